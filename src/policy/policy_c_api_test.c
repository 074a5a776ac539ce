/* The C library seen from C: every function, its failures, and that a failure changes nothing. */
#include <math.h>
#include <memdecay/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

static memdecay_policy_session* open_session(const char* policy, int32_t demote) {
  memdecay_policy_options options;
  memdecay_policy_session* session = NULL;
  char message[200];
  memdecay_policy_options_init(&options);
  options.policy = policy;
  options.bytes_per_token = 100;
  options.page_tokens = 10;
  options.newest_pages = 1;
  options.demote = demote;
  options.floor_share = 0.1;
  EXPECT(memdecay_policy_open(&options, &session, message, sizeof message) == MEMDECAY_OK);
  EXPECT(session != NULL && message[0] == '\0');
  return session;
}

static int32_t append(memdecay_policy_session* session, int32_t tokens, memdecay_region region) {
  memdecay_policy_span span;
  int32_t page = -1;
  memdecay_policy_span_init(&span);
  span.tokens = tokens;
  span.region = (int32_t)region;
  EXPECT(memdecay_policy_append(session, &span, &page) == MEMDECAY_OK);
  return page;
}

static void opening_says_what_is_wrong(void) {
  memdecay_policy_options options;
  memdecay_policy_session* session = NULL;
  char message[200];
  char tiny[4];
  memdecay_policy_options_init(&options);
  EXPECT(memdecay_policy_open(&options, &session, message, sizeof message) ==
         MEMDECAY_INVALID_ARGUMENT);
  EXPECT(strstr(message, "0 bytes") != NULL && session == NULL);
  options.bytes_per_token = 1;
  options.policy = "best";
  EXPECT(memdecay_policy_open(&options, &session, tiny, sizeof tiny) == MEMDECAY_NOT_FOUND);
  EXPECT(strlen(tiny) == 3);
  options.policy = "lru";
  options.struct_size -= 1;
  EXPECT(memdecay_policy_open(&options, &session, NULL, 0) == MEMDECAY_INVALID_ARGUMENT);
  options.struct_size += 2; /* as from a header that is newer than the library */
  EXPECT(memdecay_policy_open(&options, &session, message, sizeof message) ==
         MEMDECAY_INVALID_ARGUMENT);
  EXPECT(strstr(message, "struct_size") != NULL);
  options.struct_size -= 1;
  options.floor_share = NAN;
  EXPECT(memdecay_policy_open(&options, &session, NULL, 0) == MEMDECAY_INVALID_ARGUMENT);
  options.floor_share = 0;
  EXPECT(memdecay_policy_open(&options, NULL, NULL, 0) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_open(&options, &session, NULL, 0) == MEMDECAY_OK);
  memdecay_policy_close(session);
  memdecay_policy_close(NULL);
  memdecay_policy_options_init(NULL);
  memdecay_policy_span_init(NULL);
  memdecay_policy_request_init(NULL);
}

static void what_memory_cannot_hold_is_a_status(void) {
  memdecay_policy_session* session = open_session("lru", 1);
  const int32_t page = append(session, 10, MEMDECAY_REGION_RECENT);
  const float value = 1;
  memdecay_policy_action action = {0, MEMDECAY_FORM_GONE, 0};
  EXPECT(memdecay_policy_observe(session, MEMDECAY_EVIDENCE_ATTENTION_MASS, MEMDECAY_PHASE_ACT,
                                 &page, &value, (size_t)-1) == MEMDECAY_OUT_OF_MEMORY);
  EXPECT(strcmp(memdecay_policy_message(session), "out of memory") == 0);
  EXPECT(memdecay_policy_apply(session, &action, (size_t)-1) == MEMDECAY_OUT_OF_MEMORY);
  EXPECT(memdecay_policy_holds(session, page) == 1);
  memdecay_policy_close(session);
}

static void a_form_never_rises_within_a_plan(void) {
  memdecay_policy_session* session = open_session("lru", 1);
  const memdecay_policy_action twice[2] = {{0, MEMDECAY_FORM_INT4, 0}, {0, MEMDECAY_FORM_INT8, 0}};
  uint64_t after;
  append(session, 10, MEMDECAY_REGION_RECENT);
  append(session, 10, MEMDECAY_REGION_RECENT);
  EXPECT(memdecay_policy_apply(session, twice, 1) == MEMDECAY_OK);
  after = memdecay_policy_live_bytes(session);
  memdecay_policy_close(session);
  session = open_session("lru", 1);
  append(session, 10, MEMDECAY_REGION_RECENT);
  append(session, 10, MEMDECAY_REGION_RECENT);
  EXPECT(memdecay_policy_apply(session, twice, 2) == MEMDECAY_OK);
  EXPECT(memdecay_policy_live_bytes(session) == after);
  memdecay_policy_close(session);
}

static void pages_plans_and_their_application(void) {
  memdecay_policy_session* session = open_session("window", 0);
  memdecay_policy_request request;
  memdecay_policy_action actions[8];
  memdecay_policy_plan_summary summary;
  EXPECT(append(session, 15, MEMDECAY_REGION_SYSTEM) == 0);
  EXPECT(append(session, 1, MEMDECAY_REGION_RECENT) == 2);
  EXPECT(append(session, 1, MEMDECAY_REGION_RECENT) == 2); /* the open page goes on */
  EXPECT(append(session, 10, MEMDECAY_REGION_TOOL) == 3);
  EXPECT(append(session, 3, MEMDECAY_REGION_ORDINARY) == 4);
  EXPECT(memdecay_policy_page_count(session) == 5);
  EXPECT(memdecay_policy_live_bytes(session) == 3000);

  memdecay_policy_request_init(&request);
  request.budget_bytes = 2000;
  EXPECT(memdecay_policy_plan(session, &request, NULL, 0, &summary) == MEMDECAY_OK);
  EXPECT(summary.actions == 1 && summary.freed_bytes == 1000 && summary.missing_bytes == 0);
  request.budget_bytes = 0;
  EXPECT(memdecay_policy_plan(session, &request, actions, 8, &summary) == MEMDECAY_OK);
  EXPECT(summary.actions == 4 && summary.missing_bytes == 300); /* the newest page stays */
  EXPECT(actions[0].page == 0 && actions[0].form == MEMDECAY_FORM_GONE);
  EXPECT(actions[1].page == 1 && actions[1].freed_bytes == 500);

  EXPECT(memdecay_policy_apply(session, actions, 2) == MEMDECAY_OK);
  EXPECT(memdecay_policy_live_bytes(session) == 1500);
  EXPECT(memdecay_policy_holds(session, 1) == 0 && memdecay_policy_holds(session, 2) == 1);
  EXPECT(memdecay_policy_holds(session, -1) == 0 && memdecay_policy_holds(session, 99) == 0);
  actions[0] = actions[2]; /* held, then one that is gone: all or nothing */
  EXPECT(memdecay_policy_apply(session, actions, 2) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(strstr(memdecay_policy_message(session), "page 1 is not held") != NULL);
  EXPECT(memdecay_policy_live_bytes(session) == 1500);
  memdecay_policy_close(session);
}

static void evidence_decides(void) {
  memdecay_policy_session* session = open_session("memdecay", 0);
  memdecay_policy_request request;
  memdecay_policy_action action;
  char text[300];
  int32_t pages[3];
  const float values[3] = {0.5F, 0.01F, 0.5F};
  const float wrong[3] = {0.5F, NAN, 0.5F};
  append(session, 10, MEMDECAY_REGION_SYSTEM);
  pages[0] = append(session, 30, MEMDECAY_REGION_RECENT);
  pages[1] = pages[0] + 1;
  pages[2] = 77; /* never given out: passed over */
  append(session, 10, MEMDECAY_REGION_ORDINARY);
  EXPECT(memdecay_policy_observe(session, MEMDECAY_EVIDENCE_DELETION_ERROR, MEMDECAY_PHASE_ACT,
                                 pages, wrong, 3) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_observe(session, MEMDECAY_EVIDENCE_DELETION_ERROR, MEMDECAY_PHASE_ACT,
                                 pages, values, 3) == MEMDECAY_OK);
  EXPECT(memdecay_policy_observe(session, 4, 0, pages, values, 3) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_observe(session, 0, 4, pages, values, 3) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_observe(session, 0, 0, NULL, values, 3) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_observe(session, 0, 0, NULL, NULL, 0) == MEMDECAY_OK);
  EXPECT(memdecay_policy_advance(session, 5) == MEMDECAY_OK);
  EXPECT(memdecay_policy_advance(session, 4) == MEMDECAY_INVALID_ARGUMENT);
  memdecay_policy_request_init(&request);
  request.budget_bytes = memdecay_policy_live_bytes(session) - 1;
  EXPECT(memdecay_policy_plan(session, &request, &action, 1, NULL) == MEMDECAY_OK);
  EXPECT(action.page == pages[1]);
  EXPECT(memdecay_policy_explain(session, pages[1], text, sizeof text) == MEMDECAY_OK);
  EXPECT(strstr(text, "evidence") != NULL && strstr(text, "recent") != NULL);
  EXPECT(memdecay_policy_explain(session, 77, text, sizeof text) == MEMDECAY_NOT_FOUND);
  memdecay_policy_close(session);
}

static void floors_pins_and_forms(void) {
  memdecay_policy_session* session = open_session("memdecay", 1);
  memdecay_policy_request request;
  memdecay_policy_action actions[8];
  memdecay_policy_plan_summary summary;
  memdecay_policy_span span;
  size_t i;
  append(session, 10, MEMDECAY_REGION_SYSTEM);
  memdecay_policy_span_init(&span);
  span.tokens = 40;
  span.item = 0;
  span.exact_tokens = 41;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  span.exact_tokens = 20;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_OK);
  append(session, 10, MEMDECAY_REGION_RECENT);
  memdecay_policy_request_init(&request);
  request.budget_bytes = memdecay_policy_live_bytes(session) - 100;
  EXPECT(memdecay_policy_plan(session, &request, actions, 8, &summary) == MEMDECAY_OK);
  EXPECT(summary.actions == 1 && actions[0].form == MEMDECAY_FORM_INT8);
  EXPECT(actions[0].freed_bytes == 440);
  EXPECT(memdecay_policy_apply(session, actions, 1) == MEMDECAY_OK);
  EXPECT(memdecay_policy_apply(session, actions, 1) == MEMDECAY_INVALID_ARGUMENT);
  request.budget_bytes = 0;
  EXPECT(memdecay_policy_plan(session, &request, actions, 8, &summary) == MEMDECAY_OK);
  size_t kept = 0;
  for (i = 0; i < summary.actions; ++i) {
    if (actions[i].form != MEMDECAY_FORM_GONE) ++kept;
  }
  EXPECT(summary.actions == 4 && kept == 1); /* the item's floor keeps one, in fewer bits */
  EXPECT(memdecay_policy_end_item(session, 0) == MEMDECAY_OK);
  EXPECT(memdecay_policy_plan(session, &request, actions, 8, &summary) == MEMDECAY_OK);
  for (i = 0; i < summary.actions; ++i) EXPECT(actions[i].form == MEMDECAY_FORM_GONE);
  memdecay_policy_close(session);
}

static void wrong_spans_are_refused(void) {
  memdecay_policy_session* session = open_session("random", 0);
  memdecay_policy_span span;
  memdecay_policy_span_init(&span);
  EXPECT(memdecay_policy_append(session, NULL, NULL) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT); /* 0 tokens */
  span.tokens = INT32_MAX;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  span.tokens = 1;
  span.region = 5;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  span.region = -1;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  span.region = 0;
  span.tool_round = INT32_MAX;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  span.tool_round = -2;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  span.tool_round = -1;
  span.struct_size = 0;
  EXPECT(memdecay_policy_append(session, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_page_count(session) == 0 && memdecay_policy_live_bytes(session) == 0);
  EXPECT(memdecay_policy_plan(session, NULL, NULL, 0, NULL) == MEMDECAY_INVALID_ARGUMENT);
  EXPECT(memdecay_policy_append(NULL, &span, NULL) == MEMDECAY_INVALID_ARGUMENT);
  memdecay_policy_close(session);
}

int main(void) {
  opening_says_what_is_wrong();
  what_memory_cannot_hold_is_a_status();
  a_form_never_rises_within_a_plan();
  pages_plans_and_their_application();
  evidence_decides();
  floors_pins_and_forms();
  wrong_spans_are_refused();
  puts("policy_c_api_test: all hold");
  return 0;
}
