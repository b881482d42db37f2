#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/generators/test-headers.sh SOURCE BUILD
#
# What a program in C or C++ includes and asks pkg-config for. Prints TAP.
set -u

source=$1
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"
build=$2
export PKG_CONFIG_PATH=$build/meson-private

# compiles COMPILER LANGUAGE: standard input, with all warnings as errors.
compiles() {
        "$1" -x "$2" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$source/include" -
}

# with_map HEADER...: a program that includes these and uses the map of errors.
with_map() {
        printf '#include <%s>\n' "$@"
        echo 'int main(void) { return sd_bus_error_add_map(perfalloc_error_map); }'
}

with_sample() {
        printf '#include <perfalloc/sample.h>\n#include <stddef.h>\n'
        echo 'unsigned long size(const struct perfalloc_sample *s);'
        echo 'unsigned long size(const struct perfalloc_sample *s) { return s->readings[0].value; }'
}

with_event() {
        printf '#include <perfalloc/event.h>\n'
        echo 'int next(int stream);'
        echo 'int next(int stream) { return perfalloc_event_receive(stream, 0); }'
}

event_compiles() {
        with_event | compiles "$1" "$2"
}

map_compiles() {
        local compiler=$1 language=$2
        shift 2

        with_map "$@" | compiles "$compiler" "$language"
}

sample_compiles() {
        with_sample | compiles "$1" "$2"
}

variable_is() {
        [[ $(pkg-config --variable="$1" perfalloc) == "$2" ]]
}

for compiler in cc c++ clang clang++; do
        language=c
        [[ $compiler != *++ ]] || language=c++
        if ! command -v "$compiler" >/dev/null; then
                skip "headers in $language" "no $compiler here"
                continue
        fi
        check "$compiler: dbus.h has the map before sd-bus.h is included" \
                map_compiles "$compiler" $language perfalloc/dbus.h systemd/sd-bus.h
        check "$compiler: and after it" \
                map_compiles "$compiler" $language systemd/sd-bus.h perfalloc/dbus.h
        check "$compiler: and alone" map_compiles "$compiler" $language perfalloc/dbus.h
        check "$compiler: sample.h has no warning" sample_compiles "$compiler" $language
        check "$compiler: nor has event.h" event_compiles "$compiler" $language
done
notes_name() {
        readelf --string-dump=.note.dlopen "$build/src/service/perfallocd" | grep -F "$1"
}

check 'the service says which library it loads at run time' notes_name '"soname":["libpfm.so.4"]'
check 'pkg-config knows where the headers are' pkg-config --cflags perfalloc
check 'and the version' pkg-config --exact-version="$(sed -n "s/^  version : '\(.*\)',/\1/p" "$source/meson.build")" \
        perfalloc
check 'and the interface files' variable_is interfacesdir "$(pkg-config --variable=prefix perfalloc)/share/dbus-1/interfaces"
tap_end
