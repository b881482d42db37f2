/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tests of auth with a mock polkitd, on a bus where nobody is root.
 */

#include <grp.h>
#include <poll.h>

#include "service/auth/auth-cache.h"
#include "service/auth/polkit-check.h"
#include "service/auth/test-polkitd.h"
#include "service/bus/test-clock.h"

#include "machine.h"

#include <libglib-testing/dbus-queue.h>

static const char polkit_xml[] =
        "<node><interface name='" POLKIT_INTERFACE "'>"
        "<method name='CheckAuthorization'><arg type='(sa{sv})' direction='in'/>"
        "<arg type='s' direction='in'/><arg type='a{ss}' direction='in'/>"
        "<arg type='u' direction='in'/><arg type='s' direction='in'/>"
        "<arg type='(bba{ss})' direction='out'/></method>"
        "<method name='CancelCheckAuthorization'><arg type='s' direction='in'/></method>"
        "<signal name='Changed'/></interface></node>";

typedef struct Fixture {
        GtDBusQueue *queue;
        GDBusNodeInfo *node;
        TestService service;
        sd_bus *client;
} Fixture;

static bool has_owner(sd_bus *bus, const char *name) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int yes;

        g_assert_cmpint(sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                           "org.freedesktop.DBus", "NameHasOwner", NULL, &reply,
                                           "s", name),
                        >=, 0);
        g_assert_cmpint(sd_bus_message_read(reply, "b", &yes), >=, 0);
        return yes;
}

static void fixture_up(Fixture *f, gconstpointer with_polkit) {
        g_autoptr(GError) error = NULL;

        f->queue = gt_dbus_queue_new();
        g_assert_true(gt_dbus_queue_connect(f->queue, &error));
        g_assert_no_error(error);
        f->node = g_dbus_node_info_new_for_xml(polkit_xml, &error);
        g_assert_no_error(error);
        if (with_polkit) {
                gt_dbus_queue_export_object(f->queue, POLKIT_PATH, f->node->interfaces[0], &error);
                g_assert_no_error(error);
                gt_dbus_queue_own_name(f->queue, POLKIT_NAME);
        }
        test_service_start(&f->service, g_getenv("DBUS_SESSION_BUS_ADDRESS"));
        f->client = test_connect(g_getenv("DBUS_SESSION_BUS_ADDRESS"), f->service.event, geteuid());
        if (with_polkit) /* the mock asks for its name in a thread of its own */
                WAIT_UNTIL(f->service.event, has_owner(f->client, POLKIT_NAME));
}

static void fixture_down(Fixture *f, gconstpointer with_polkit) {
        sd_bus_flush_close_unref(f->client);
        test_service_stop(&f->service);
        gt_dbus_queue_disconnect(f->queue, TRUE);
        gt_dbus_queue_free(f->queue);
        g_dbus_node_info_unref(f->node);
}

/* What polkit was asked. */
typedef struct Question {
        GDBusMethodInvocation *invocation;
        char *subject_kind, *subject_name, *action, *id;
        GVariant *details;
        uint32_t flags;
} Question;

/* gt_dbus_queue_try_pop_message() of 0.1.1 never pops anything. The other function waits without
 * our loop. */
static bool try_pop(Fixture *f, GDBusMethodInvocation **ret) {
        return gt_dbus_queue_get_n_messages(f->queue) > 0 &&
               gt_dbus_queue_pop_message(f->queue, ret);
}

static GDBusMethodInvocation *next_call(Fixture *f, const char *method) {
        GDBusMethodInvocation *invocation = NULL;

        WAIT_UNTIL(f->service.event, try_pop(f, &invocation));
        g_assert_cmpstr(g_dbus_method_invocation_get_method_name(invocation), ==, method);
        return invocation;
}

static Question next_check(Fixture *f) {
        g_autoptr(GVariant) subject = NULL, name = NULL;
        Question a = { .invocation = next_call(f, "CheckAuthorization") };
        GVariant *p = g_dbus_method_invocation_get_parameters(a.invocation);

        g_variant_get(p, "((s@a{sv})s@a{ss}us)", &a.subject_kind, &subject, &a.action, &a.details,
                      &a.flags, &a.id);
        name = g_variant_lookup_value(subject, "name", G_VARIANT_TYPE_STRING);
        a.subject_name = g_variant_dup_string(name, NULL);
        return a;
}

/* What the last call took is charged in the loop: it has not taken this time. */
static void clock_forward(Fixture *f, uint64_t usec) {
        g_assert_cmpint(sd_event_run(f->service.event, 0), >=, 0);
        test_clock_forward(usec);
}

/* A user has one check at polkit, and further ones only beside slow checks: these become slow. */
static void next_checks(Fixture *f, Question *ret, size_t n) {
        for (size_t i = 0; i < n; i++) {
                ret[i] = next_check(f);
                clock_forward(f, CHECK_SLOW_USEC);
        }
}

static void question_clear(Question *a) {
        g_clear_object(&a->invocation);
        g_clear_pointer(&a->details, g_variant_unref);
        g_clear_pointer(&a->subject_kind, g_free);
        g_clear_pointer(&a->subject_name, g_free);
        g_clear_pointer(&a->action, g_free);
        g_clear_pointer(&a->id, g_free);
}

static void invocation_reply(GDBusMethodInvocation *invocation, bool yes, bool challenge,
                             const char *key) {
        GVariantBuilder details;

        g_variant_builder_init(&details, G_VARIANT_TYPE("a{ss}"));
        /* the real polkitd sends back what it was told */
        g_variant_builder_add(&details, "{ss}", "perfalloc.uid", "1000");
        if (key)
                g_variant_builder_add(&details, "{ss}", key, "true");
        g_dbus_method_invocation_return_value(
                invocation, g_variant_new("((bba{ss}))", yes, challenge, &details));
}

/* Waits for a check of that action with those flags and answers it. */
static void answer(Fixture *f, const char *action, uint32_t flags, bool yes, bool challenge,
                   const char *key) {
        Question a = next_check(f);

        g_assert_cmpstr(a.action, ==, action);
        g_assert_cmpuint(a.flags, ==, flags);
        invocation_reply(a.invocation, yes, challenge, key);
        question_clear(&a);
}

static void expect(Fixture *f, TestCall *call, const char *error, const char *words) {
        WAIT_UNTIL(f->service.event, call->done);
        g_assert_cmpstr(call->error, ==, error);
        if (words && !strstr(call->message, words))
                g_error("'%s' does not say '%s'", call->message, words);
        test_call_clear(call);
}

#define DENIED      SD_BUS_ERROR_ACCESS_DENIED
#define INTERACTIVE SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED

static void test_yes_runs_the_method_once(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        answer(f, "org.perfalloc1.hold", 0, true, false, NULL);
        expect(f, &call, NULL, NULL);
        g_assert_cmpuint(f->service.n_done, ==, 1);
        g_assert_cmpuint(f->service.n_runs, ==, 2);
}

static void test_polkit_learns_who_asks_and_why(Fixture *f, gconstpointer userdata) {
        g_autofree char *uid = g_strdup_printf("%u", geteuid());
        const char *value;
        TestCall call;
        Question a;

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "say \"please\"\n",
                               false, &call);
        a = next_check(f);
        g_assert_cmpstr(a.subject_kind, ==, "system-bus-name");
        g_assert_cmpstr(a.subject_name, ==, test_name(f->client));
        g_assert_true(g_variant_lookup(a.details, "perfalloc.uid", "&s", &value));
        g_assert_cmpstr(value, ==, uid);
        g_assert_true(g_variant_lookup(a.details, "perfalloc.reason", "&s", &value));
        g_assert_cmpstr(value, ==, "\"say 'please'?\"");
        g_assert_true(g_variant_lookup(a.details, "perfalloc.program", "&s", &value));
        g_assert_true(g_str_has_prefix(value, "\"test-"));
        g_assert_cmpuint(strlen(a.id), >, 0);
        invocation_reply(a.invocation, true, false, NULL);
        question_clear(&a);
        expect(f, &call, NULL, NULL);
}

static void test_no_says_which_action_and_what_to_do(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD_EXCLUSIVE, &call);
        answer(f, "org.perfalloc1.hold-exclusive", 0, false, false, NULL);
        WAIT_UNTIL(f->service.event, call.done);
        g_assert_nonnull(strstr(call.message, "org.perfalloc1.hold-exclusive"));
        g_assert_nonnull(strstr(call.message, "perfalloc-users"));
        expect(f, &call, DENIED, "polkit rule");
        g_assert_cmpuint(f->service.n_done, ==, 0);
}

static void test_challenge_without_leave_to_prompt(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        answer(f, "org.perfalloc1.hold", 0, false, true, NULL);
        expect(f, &call, INTERACTIVE, "--allow-interactive-authorization=yes");
}

static void test_interactive_call_may_prompt(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        answer(f, "org.perfalloc1.hold", 1, true, false, NULL);
        expect(f, &call, NULL, NULL);

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        answer(f, "org.perfalloc1.hold", 1, false, true, NULL);
        expect(f, &call, DENIED, "no agent");

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        answer(f, "org.perfalloc1.hold", 1, false, false, "polkit.dismissed");
        expect(f, &call, DENIED, "dismissed");
}

static void test_wrong_password_is_told_from_a_rule(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        answer(f, "org.perfalloc1.hold", 1, false, false, NULL);
        answer(f, "org.perfalloc1.hold", 0, false, true, NULL);
        expect(f, &call, DENIED, "the authentication failed");

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        answer(f, "org.perfalloc1.hold", 1, false, false, NULL);
        answer(f, "org.perfalloc1.hold", 0, false, false, NULL);
        expect(f, &call, DENIED, "polkit denies it");

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        answer(f, "org.perfalloc1.hold", 1, false, false, NULL);
        answer(f, "org.perfalloc1.hold", 0, true, false, NULL);
        expect(f, &call, DENIED, "the authentication failed");
        g_assert_cmpuint(f->service.n_done, ==, 0);
}

static void test_several_actions_are_asked_one_after_another(Fixture *f, gconstpointer userdata) {
        unsigned actions = ACTION_COUNT_OTHER | ACTION_COUNT_RAW | ACTION_PERSIST;
        TestCall call;

        test_service_call(&f->service, f->client, "OpenCounters", actions, &call);
        answer(f, "org.perfalloc1.count-other", 0, true, false, NULL);
        answer(f, "org.perfalloc1.count-raw", 0, true, false, NULL);
        answer(f, "org.perfalloc1.persist", 0, true, false, NULL);
        expect(f, &call, NULL, NULL);
        g_assert_cmpuint(f->service.n_runs, ==, 2);

        test_service_call(&f->service, f->client, "OpenCounters", actions, &call);
        answer(f, "org.perfalloc1.count-other", 0, true, false, NULL);
        answer(f, "org.perfalloc1.count-raw", 0, false, false, NULL);
        expect(f, &call, DENIED, "org.perfalloc1.count-raw");
}

/* A handler may need a further action later. What was answered is not asked again. */
static void test_handler_may_check_twice(Fixture *f, gconstpointer userdata) {
        TestCall call;

        f->service.then = ACTION_PERSIST;
        test_service_call(&f->service, f->client, "OpenCounters", ACTION_COUNT_RAW, &call);
        answer(f, "org.perfalloc1.count-raw", 0, true, false, NULL);
        answer(f, "org.perfalloc1.persist", 0, true, false, NULL);
        expect(f, &call, NULL, NULL);
        g_assert_cmpuint(f->service.n_runs, ==, 3);
}

/* Also descriptors: a lease that stays open here would never hang up. */
static void test_answered_message_is_let_go_of(Fixture *f, gconstpointer userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        TestCall call = {};
        struct pollfd hangup;
        int fds[2];

        g_assert_cmpint(pipe2(fds, O_CLOEXEC), ==, 0);
        hangup = (struct pollfd){ .fd = fds[0] };
        g_assert_cmpint(sd_bus_message_new_method_call(f->client, &m, f->service.name,
                                                       PERFALLOC_OBJECT_PATH,
                                                       PERFALLOC_MANAGER_INTERFACE, "Broker"),
                        >=, 0);
        g_assert_cmpint(sd_bus_message_append(m, "ush", ACTION_COUNT_RAW, "", fds[1]), >=, 0);
        close_fd(fds[1]);
        g_assert_cmpint(sd_bus_call_async(f->client, &call.slot, m, test_call_done, &call, 0), >=,
                        0);
        m = sd_bus_message_unref(m);
        answer(f, "org.perfalloc1.count-raw", 0, true, false, NULL);
        expect(f, &call, NULL, NULL);
        WAIT_UNTIL(f->service.event, poll(&hangup, 1, 0) == 1);
        g_assert_cmpint(hangup.revents, ==, POLLHUP);
        close_fd(fds[0]);
}

static void test_what_the_table_does_not_have_is_refused(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call(&f->service, f->client, "Unlisted", ACTION_NONE, &call);
        expect(f, &call, DENIED, "not in the table");
        test_service_call(&f->service, f->client, "Unlisted", ACTION_HOLD, &call);
        expect(f, &call, DENIED, "not in the table");
        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD | ACTION_MONITOR, &call);
        expect(f, &call, DENIED, "the table does not have");
        test_service_call(&f->service, f->client, "ListEvents", ACTION_HOLD, &call);
        expect(f, &call, DENIED, "the table does not have");
        g_assert_cmpuint(f->service.n_done, ==, 0);
}

static void test_nothing_is_asked_where_nothing_is_needed(Fixture *f, gconstpointer userdata) {
        test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(f->service.n_runs, ==, 1);
}

static void test_error_is_a_no_in_polkits_words(Fixture *f, gconstpointer userdata) {
        TestCall call;
        Question a;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        a = next_check(f);
        g_dbus_method_invocation_return_dbus_error(a.invocation,
                                                   "org.freedesktop.PolicyKit1.Error.Failed",
                                                   "Action is not registered");
        question_clear(&a);
        expect(f, &call, DENIED, "Action is not registered");
}

static void test_nonsense_is_a_no(Fixture *f, gconstpointer userdata) {
        TestCall call;
        Question a;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        a = next_check(f);
        /* past the check of the interface's signature */
        g_autoptr(GDBusMessage) reply =
                g_dbus_message_new_method_reply(g_dbus_method_invocation_get_message(a.invocation));
        g_dbus_message_set_body(reply, g_variant_new("(b)", TRUE));
        g_assert_true(g_dbus_connection_send_message(
                g_dbus_method_invocation_get_connection(a.invocation), reply,
                G_DBUS_SEND_MESSAGE_FLAGS_NONE, NULL, NULL));
        expect(f, &call, DENIED, "reply is invalid");
        g_object_unref(a.invocation); /* the mock was bypassed */
        question_clear(&a);
}

static void test_without_polkit_everything_is_denied_at_once(Fixture *f, gconstpointer userdata) {
        gint64 start = g_get_monotonic_time();
        TestCall call;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        expect(f, &call, DENIED, "polkit does not answer");
        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        expect(f, &call, DENIED, "polkit does not answer");
        g_assert_cmpint(g_get_monotonic_time() - start, <, 5 * G_USEC_PER_SEC);
}

static void test_polkit_dies_midway(Fixture *f, gconstpointer userdata) {
        TestCall calls[3];
        Question asked[3];

        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", i > 0,
                                       &calls[i]);
        next_checks(f, asked, ELEMENTSOF(asked));
        g_assert_true(g_dbus_connection_close_sync(
                g_dbus_method_invocation_get_connection(asked[0].invocation), NULL, NULL));
        for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                expect(f, &calls[i], DENIED, "polkit does not answer");
                invocation_reply(asked[i].invocation, true, false, NULL); /* to nobody */
                question_clear(&asked[i]);
        }
        g_assert_cmpuint(f->service.n_done, ==, 0);
}

static void test_polkit_hangs_and_others_are_served(Fixture *f, gconstpointer userdata) {
        TestCall calls[30];
        Question asked[8];

        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true,
                                       &calls[i]);
        next_checks(f, asked, ELEMENTSOF(asked));
        /* the loop goes on, and what needs no permission is done */
        for (int i = 0; i < 10; i++)
                test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        gt_dbus_queue_assert_no_messages(f->queue);
        g_assert_cmpuint(test_service_n_authorizing(&f->service), ==, ELEMENTSOF(calls));

        for (size_t i = 0; i < ELEMENTSOF(asked); i++) {
                invocation_reply(asked[i].invocation, true, false, NULL);
                question_clear(&asked[i]);
        }
        for (size_t i = ELEMENTSOF(asked); i < ELEMENTSOF(calls); i++)
                answer(f, "org.perfalloc1.hold", 1, true, false, NULL);
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                expect(f, &calls[i], NULL, NULL);
        g_assert_cmpuint(f->service.n_done, ==, 10 + ELEMENTSOF(calls));
        g_assert_cmpuint(test_service_n_authorizing(&f->service), ==, 0);
}

static void test_check_is_cancelled_when_the_caller_leaves(Fixture *f, gconstpointer userdata) {
        GDBusMethodInvocation *cancel;
        const char *id;
        TestCall call;
        Question a;

        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &call);
        a = next_check(f);
        test_call_clear(&call);
        f->client = sd_bus_flush_close_unref(f->client);

        cancel = next_call(f, "CancelCheckAuthorization");
        g_variant_get(g_dbus_method_invocation_get_parameters(cancel), "(&s)", &id);
        g_assert_cmpstr(id, ==, a.id);
        g_dbus_method_invocation_return_value(cancel, NULL);
        g_object_unref(cancel);

        /* the answer comes after the client has left: nothing is created */
        invocation_reply(a.invocation, true, false, NULL);
        question_clear(&a);
        f->client = test_connect(g_getenv("DBUS_SESSION_BUS_ADDRESS"), f->service.event, geteuid());
        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        answer(f, "org.perfalloc1.hold", 0, true, false, NULL);
        expect(f, &call, NULL, NULL);
        g_assert_cmpuint(f->service.n_done, ==, 1);
        g_assert_cmpuint(f->service.n_runs, ==, 3);
}

/* Clients that come and go have no more checks pending than clients that stay. If polkitd does not
 * drop cancelled checks, the user is not locked out for ever. */
static void test_cancelled_checks_keep_their_place_for_a_while(Fixture *f, gconstpointer userdata) {
        GDBusMethodInvocation *cancel;
        Question asked[8], next;
        TestCall call;

        for (size_t i = 0; i < ELEMENTSOF(asked); i++) {
                test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true,
                                       &call);
                next_checks(f, &asked[i], 1);
                test_call_clear(&call);
                sd_bus_flush_close_unref(f->client);
                cancel = next_call(f, "CancelCheckAuthorization");
                g_dbus_method_invocation_return_value(cancel, NULL);
                g_object_unref(cancel);
                f->client = test_connect(g_getenv("DBUS_SESSION_BUS_ADDRESS"), f->service.event,
                                         geteuid());
        }
        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        gt_dbus_queue_assert_no_messages(f->queue);

        clock_forward(f, 2 * USEC_PER_SEC);
        next = next_check(f);
        invocation_reply(next.invocation, true, false, NULL);
        question_clear(&next);
        expect(f, &call, NULL, NULL);

        /* answers to cancelled checks have no effect */
        for (size_t i = 0; i < ELEMENTSOF(asked); i++) {
                invocation_reply(asked[i].invocation, true, false, NULL);
                question_clear(&asked[i]);
        }
        test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(f->service.n_done, ==, 3);
}

static void test_waiting_call_of_who_left_is_never_asked(Fixture *f, gconstpointer userdata) {
        sd_bus *other =
                test_connect(g_getenv("DBUS_SESSION_BUS_ADDRESS"), f->service.event, geteuid());
        TestCall first[8], waiting;
        Question asked[8];

        for (size_t i = 0; i < ELEMENTSOF(first); i++) {
                test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &first[i]);
                next_checks(f, &asked[i], 1);
        }
        test_service_call(&f->service, other, "Hold", ACTION_HOLD, &waiting);
        WAIT_UNTIL(f->service.event, test_service_n_authorizing(&f->service) == 9);
        test_call_clear(&waiting);
        sd_bus_flush_close_unref(other);
        WAIT_UNTIL(f->service.event, test_service_n_authorizing(&f->service) == 8);

        for (size_t i = 0; i < ELEMENTSOF(first); i++) {
                invocation_reply(asked[i].invocation, true, false, NULL);
                question_clear(&asked[i]);
                expect(f, &first[i], NULL, NULL);
        }
        test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        gt_dbus_queue_assert_no_messages(f->queue);
}

static void test_full_line_is_refused_with_its_limit(Fixture *f, gconstpointer userdata) {
        TestCall calls[13];
        Question asked[8];

        auth_set_waiting_max(f->service.auth, 4);
        for (size_t i = 0; i < ELEMENTSOF(asked); i++) {
                test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &calls[i]);
                next_checks(f, &asked[i], 1);
        }
        for (size_t i = ELEMENTSOF(asked); i < 12; i++)
                test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &calls[i]);
        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &calls[12]);
        expect(f, &calls[12], SD_BUS_ERROR_LIMITS_EXCEEDED, "4 calls");

        for (size_t i = 0; i < ELEMENTSOF(asked); i++) {
                invocation_reply(asked[i].invocation, true, false, NULL);
                question_clear(&asked[i]);
        }
        for (size_t i = 8; i < 12; i++)
                answer(f, "org.perfalloc1.hold", 0, true, false, NULL);
        for (size_t i = 0; i < 12; i++)
                expect(f, &calls[i], NULL, NULL);
}

static int read_bool(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        int *ret = userdata;

        g_assert_cmpint(sd_bus_message_read(m, "b", ret), >=, 0);
        return 1;
}

static int ask_may_manage(Fixture *f, const char *answer_key, bool yes, bool challenge) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        int result = -1;

        g_assert_cmpint(sd_bus_call_method_async(f->client, &slot, f->service.name,
                                                 PERFALLOC_OBJECT_PATH, PERFALLOC_MANAGER_INTERFACE,
                                                 "ListUsers", read_bool, &result, NULL),
                        >=, 0);
        answer(f, "org.perfalloc1.manage", 0, yes, challenge, answer_key);
        WAIT_UNTIL(f->service.event, result >= 0);
        return result;
}

static void test_may_manage_is_a_quiet_question(Fixture *f, gconstpointer userdata) {
        g_assert_cmpint(ask_may_manage(f, NULL, true, false), ==, 1);
        g_assert_cmpint(ask_may_manage(f, NULL, false, false), ==, 0);
        g_assert_cmpint(ask_may_manage(f, NULL, false, true), ==, 0);
}

/* Opens something that needs the action, and returns whether polkit was asked. polkit says yes,
 * with that key. */
static bool is_asked(Fixture *f, unsigned action, const char *reason, const char *key) {
        GDBusMethodInvocation *invocation = NULL;
        TestCall call;
        bool asked = false;

        test_service_call_full(&f->service, f->client,
                               action == ACTION_SAMPLE_OWN ? "OpenEvent" : "OpenCounters", action,
                               reason, false, &call);
        WAIT_UNTIL(f->service.event, call.done || try_pop(f, &invocation));
        if (invocation) {
                asked = true;
                invocation_reply(invocation, true, false, key);
                g_object_unref(invocation);
        }
        expect(f, &call, NULL, NULL);
        return asked;
}

static void test_only_three_actions_are_kept(Fixture *f, gconstpointer userdata) {
        static const struct {
                Action action;
                bool kept;
        } actions[] = {
                { ACTION_COUNT_OWN, true },    { ACTION_COUNT_KERNEL, true },
                { ACTION_COUNT_SYSTEM, true }, { ACTION_COUNT_OTHER, false },
                { ACTION_COUNT_RAW, false },   { ACTION_PERSIST, false },
                { ACTION_MONITOR, false },     { ACTION_SAMPLE_OWN, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(actions); i++) {
                g_assert_true(is_asked(f, actions[i].action, "", NULL));
                g_assert_true(is_asked(f, actions[i].action, "", NULL) == !actions[i].kept);
        }
}

static void test_kept_for_the_same_connection_and_details(Fixture *f, gconstpointer userdata) {
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
        g_assert_false(is_asked(f, ACTION_COUNT_OWN, "", NULL));
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "another reason", NULL));
        g_assert_true(is_asked(f, ACTION_COUNT_KERNEL, "", NULL));
        g_assert_false(is_asked(f, ACTION_COUNT_OWN, "", NULL));

        sd_bus_flush_close_unref(f->client);
        f->client = test_connect(g_getenv("DBUS_SESSION_BUS_ADDRESS"), f->service.event, geteuid());
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
}

static void test_password_is_never_kept(Fixture *f, gconstpointer userdata) {
        TestCall call;

        g_assert_true(is_asked(f, ACTION_COUNT_KERNEL, "", "polkit.temporary_authorization_id"));
        g_assert_true(is_asked(f, ACTION_COUNT_KERNEL, "",
                               "polkit.retains_authorization_after_challenge"));

        /* a yes after a prompt looks like a plain one, so polkit is asked without a prompt first */
        for (int i = 0; i < 2; i++) {
                test_service_call_full(&f->service, f->client, "OpenCounters", ACTION_COUNT_KERNEL,
                                       "", true, &call);
                answer(f, "org.perfalloc1.count-kernel", 0, false, true, NULL);
                answer(f, "org.perfalloc1.count-kernel", 1, true, false, NULL);
                expect(f, &call, NULL, NULL);
        }
}

static void test_no_is_never_kept(Fixture *f, gconstpointer userdata) {
        TestCall call;

        test_service_call(&f->service, f->client, "OpenCounters", ACTION_COUNT_OWN, &call);
        answer(f, "org.perfalloc1.count-own", 0, false, false, NULL);
        expect(f, &call, DENIED, NULL);
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
}

static void test_changed_forgets_what_was_kept(Fixture *f, gconstpointer userdata) {
        TestCall call;
        Question a;

        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
        g_assert_false(is_asked(f, ACTION_COUNT_OWN, "", NULL));

        /* from the connection with polkit's name, and before its answer to another call */
        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &call);
        a = next_check(f);
        g_assert_true(g_dbus_connection_emit_signal(
                g_dbus_method_invocation_get_connection(a.invocation), NULL, POLKIT_PATH,
                POLKIT_INTERFACE, "Changed", NULL, NULL));
        invocation_reply(a.invocation, true, false, NULL);
        question_clear(&a);
        expect(f, &call, NULL, NULL);
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
}

static void test_kept_for_ten_seconds(Fixture *f, gconstpointer userdata) {
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
        clock_forward(f, 5 * USEC_PER_SEC);
        g_assert_false(is_asked(f, ACTION_COUNT_OWN, "", NULL));
        clock_forward(f, 5 * USEC_PER_SEC);
        g_assert_true(is_asked(f, ACTION_COUNT_OWN, "", NULL));
}

/* A polkitd that never answers, without a person who could be asked. */
static void test_silence_is_a_no_after_25_seconds(Fixture *f, gconstpointer userdata) {
        TestCall plain, prompt;
        Question a, b;

        test_service_call(&f->service, f->client, "Hold", ACTION_HOLD, &plain);
        next_checks(f, &a, 1);
        test_service_call_full(&f->service, f->client, "Hold", ACTION_HOLD, "", true, &prompt);
        next_checks(f, &b, 1);
        clock_forward(f, 23 * USEC_PER_SEC);
        test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        g_assert_false(plain.done);
        clock_forward(f, 2 * USEC_PER_SEC);
        expect(f, &plain, DENIED, "polkit does not answer");

        /* a person may take longer */
        g_assert_false(prompt.done);
        invocation_reply(b.invocation, true, false, NULL);
        expect(f, &prompt, NULL, NULL);
        invocation_reply(a.invocation, true, false, NULL);
        question_clear(&a);
        question_clear(&b);
        test_service_assert_ok(&f->service, f->client, "ListEvents", ACTION_NONE);
        g_assert_cmpuint(f->service.n_done, ==, 3);
}

#define TEST(name, function)                                                                       \
        g_test_add("/auth/" name, Fixture, "polkit", fixture_up, function, fixture_down)

int main(int argc, char *argv[]) {
        /* root is not asked, and the mock's bus accepts its own user only */
        if (geteuid() == 0)
                g_assert_true(setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                              setresuid(NOBODY, NOBODY, NOBODY) == 0);
        if (machine_skips_all(MACHINE_PROC))
                return 0;
        g_test_init(&argc, &argv, NULL);

        TEST("yes-runs-the-method-once", test_yes_runs_the_method_once);
        TEST("polkit-learns-who-asks-and-why", test_polkit_learns_who_asks_and_why);
        TEST("no-says-which-action-and-what-to-do", test_no_says_which_action_and_what_to_do);
        TEST("challenge-without-leave-to-prompt", test_challenge_without_leave_to_prompt);
        TEST("wrong-password-is-told-from-a-rule", test_wrong_password_is_told_from_a_rule);
        TEST("interactive-call-may-prompt", test_interactive_call_may_prompt);
        TEST("several-actions-one-after-another", test_several_actions_are_asked_one_after_another);
        TEST("handler-may-check-twice", test_handler_may_check_twice);
        TEST("answered-message-is-let-go-of", test_answered_message_is_let_go_of);
        TEST("what-the-table-lacks-is-refused", test_what_the_table_does_not_have_is_refused);
        TEST("nothing-asked-where-nothing-needed", test_nothing_is_asked_where_nothing_is_needed);
        TEST("error-is-a-no-in-polkits-words", test_error_is_a_no_in_polkits_words);
        TEST("nonsense-is-a-no", test_nonsense_is_a_no);
        g_test_add("/auth/without-polkit-denied-at-once", Fixture, NULL, fixture_up,
                   test_without_polkit_everything_is_denied_at_once, fixture_down);
        TEST("polkit-dies-midway", test_polkit_dies_midway);
        TEST("polkit-hangs-and-others-are-served", test_polkit_hangs_and_others_are_served);
        TEST("cancelled-when-the-caller-leaves", test_check_is_cancelled_when_the_caller_leaves);
        TEST("cancelled-keep-their-place-a-while",
             test_cancelled_checks_keep_their_place_for_a_while);
        TEST("who-left-is-never-asked-for", test_waiting_call_of_who_left_is_never_asked);
        TEST("full-line-is-refused-with-its-limit", test_full_line_is_refused_with_its_limit);
        TEST("may-manage-is-a-quiet-question", test_may_manage_is_a_quiet_question);
        TEST("only-three-actions-are-kept", test_only_three_actions_are_kept);
        TEST("kept-for-same-connection-and-details", test_kept_for_the_same_connection_and_details);
        TEST("password-is-never-kept", test_password_is_never_kept);
        TEST("no-is-never-kept", test_no_is_never_kept);
        TEST("changed-forgets-what-was-kept", test_changed_forgets_what_was_kept);
        TEST("kept-for-ten-seconds", test_kept_for_ten_seconds);
        TEST("silence-is-a-no-after-25-seconds", test_silence_is_a_no_after_25_seconds);
        return g_test_run();
}
