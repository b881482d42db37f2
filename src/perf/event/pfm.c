/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pfm.h"

#include <dlfcn.h>
#include <string.h>

#define PFM_LIBRARY "libpfm.so.4" /* the ABI that <perfmon/pfmlib.h> of version 4 describes */

#define PFM_NOTE                                                                                   \
        "[{\"feature\":\"events\",\"description\":\"Names of the CPU's events\","                  \
        "\"priority\":\"recommended\",\"soname\":[\"" PFM_LIBRARY "\"]}]"

/* Tells packagers' tools what is loaded at run time (https://systemd.io/ELF_DLOPEN_METADATA). */
static const struct {
        uint32_t name_size, text_size, type;
        char name[4];
        _Alignas(uint32_t) char text[sizeof(PFM_NOTE)];
} note __attribute__((used, aligned(4), section(".note.dlopen"))) = {
        .name_size = sizeof("FDO"),
        .text_size = sizeof(PFM_NOTE),
        .type = 0x407c0c0a,
        .name = "FDO",
        .text = PFM_NOTE,
};

static Pfm loaded;

static const struct {
        const char *name;
        size_t offset;
} symbols[] = {
        { "pfm_initialize", offsetof(Pfm, initialize) },
        { "pfm_strerror", offsetof(Pfm, strerror) },
        { "pfm_get_pmu_info", offsetof(Pfm, get_pmu_info) },
        { "pfm_find_event", offsetof(Pfm, find_event) },
        { "pfm_get_event_next", offsetof(Pfm, get_event_next) },
        { "pfm_get_event_info", offsetof(Pfm, get_event_info) },
        { "pfm_get_event_attr_info", offsetof(Pfm, get_event_attr_info) },
        { "pfm_get_os_event_encoding", offsetof(Pfm, get_os_event_encoding) },
};

int pfm_load(const Pfm **ret, Refusal *why) {
        Pfm pfm = {};
        void *library;
        int r;

        if (loaded.initialize) {
                *ret = &loaded;
                return 0;
        }
        /* RTLD_NODELETE: libpfm4 keeps a list of the kernel's PMUs (git versions after 4.13.0) that
         * pfm_terminate() does not free, so that unloading the library would leak it. */
        library = dlopen(PFM_LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library)
                return refuse(
                        why, REFUSAL_NOT_IMPLEMENTED,
                        "the names of this CPU's events are not available: %s; install libpfm4",
                        dlerror());
        for (size_t i = 0; i < ELEMENTSOF(symbols); i++) {
                void *symbol = dlsym(library, symbols[i].name);

                if (!symbol) {
                        dlclose(library);
                        return refuse(why, REFUSAL_NOT_IMPLEMENTED, "%s has no %s: install libpfm4",
                                      PFM_LIBRARY, symbols[i].name);
                }
                memcpy((char *) &pfm + symbols[i].offset, &symbol, sizeof(symbol));
        }
        r = pfm.initialize();
        if (r != PFM_SUCCESS) {
                const char *words = pfm.strerror(r);

                r = r == PFM_ERR_NOMEM ? -ENOMEM
                                       : refuse(why, REFUSAL_NOT_IMPLEMENTED,
                                                "libpfm4 does not work on this machine: %s", words);
                dlclose(library);
                return r;
        }
        loaded = pfm;
        *ret = &loaded;
        return 0;
}
