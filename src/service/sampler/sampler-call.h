/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * CreateSampler, BlockSamplers, UnblockSamplers and HasSamplers of org.perfalloc1.Manager: userdata
 * is the Samplers.
 */

#include <systemd/sd-bus.h>

int sampler_call_create(sd_bus_message *m, void *userdata, sd_bus_error *error);
int sampler_call_block(sd_bus_message *m, void *userdata, sd_bus_error *error);
int sampler_call_unblock(sd_bus_message *m, void *userdata, sd_bus_error *error);
int sampler_call_has(sd_bus_message *m, void *userdata, sd_bus_error *error);
