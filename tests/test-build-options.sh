#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# usage: tests/test-build-options.sh SOURCE
#
# The options of the build for what distributions place themselves. Prints TAP. Nothing is compiled.
set -u

source=$1
# shellcheck source=tests/tap.sh
. "$source/tests/tap.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A pkg-config that knows all but systemd.pc.
cat >"$scratch/pkg-config" <<'END'
#!/bin/bash
for word; do
        [[ $word != systemd ]] || exit 1
done
PATH=${PATH#*:} exec pkg-config "$@"
END
chmod +x "$scratch/pkg-config"

# configure NAME OPTION...
configure() {
        PKG_CONFIG=$scratch/pkg-config meson setup "$scratch/$1" "$source" --prefix=/usr -Dtests=false "${@:2}"
}

# installs NAME PATH: whether a build would install this file.
installs() {
        meson introspect --installed "$scratch/$1" | python3 -c \
                'import json, sys; sys.exit(sys.argv[1] not in json.load(sys.stdin).values())' "$2"
}

directories=(-Dunitdir=/u -Dsysusersdir=/s -Dcatalogdir=/c)
check_not 'without systemd.pc the directories have to be named' configure none
check 'a build that names them does not need it' configure named "${directories[@]}"
check 'the units are in unitdir' installs named /u/perfallocd.service
check 'the user is in sysusersdir' installs named /s/perfalloc.conf
check 'the catalog is in catalogdir' installs named /c/perfalloc.catalog
check 'zsh completions are in site-functions' installs named /usr/share/zsh/site-functions/_perfallocctl
check 'other completions may be placed, or left out' configure other "${directories[@]}" \
        -Dzshcompletiondir=zsh/vendor-completions -Dbashcompletiondir=no
check 'as Debian has them' installs other /usr/share/zsh/vendor-completions/_perfallocctl
check_not 'and left out' installs other /usr/share/bash-completion/completions/perfallocctl
tap_end
