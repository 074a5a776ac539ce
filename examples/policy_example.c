/* A cache of one's own under libmemdecay-policy: an agent works through twenty tool calls in a
 * budget for a sixth of its tokens, and still holds its goal.
 *
 *   cc policy_example.c -lmemdecay-policy && ./a.out
 */
#include <memdecay/policy.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBytesPerToken = 1024, kBudgetBytes = 512 * 1024, kMostActions = 256 };

static memdecay_policy_session* session;

static void check(memdecay_status status, const char* what) {
  if (status == MEMDECAY_OK) return;
  fprintf(stderr, "%s: %s\n", what, memdecay_policy_message(session));
  exit(1);
}

static int32_t append(int32_t tokens, memdecay_region region, int32_t round) {
  memdecay_policy_span span;
  int32_t first = 0;
  memdecay_policy_span_init(&span);
  span.tokens = tokens;
  span.region = (int32_t)region;
  span.tool_round = round;
  span.tool_core = region == MEMDECAY_REGION_TOOL;
  span.pinned = region == MEMDECAY_REGION_SYSTEM;
  check(memdecay_policy_append(session, &span, &first), "append");
  return first;
}

/* What a kernel would report: here, that the assistant looks at the goal and at little else. */
static void observe(int32_t goal) {
  static int32_t pages[4096];
  static float values[4096];
  size_t count = 0;
  int32_t page;
  for (page = 0; page < memdecay_policy_page_count(session) && count < 4096; ++page) {
    if (!memdecay_policy_holds(session, page)) continue;
    pages[count] = page;
    values[count++] = page == goal ? 0.2F : 0.01F;
  }
  check(memdecay_policy_observe(session, MEMDECAY_EVIDENCE_DELETION_ERROR, MEMDECAY_PHASE_ACT,
                                pages, values, count),
        "observe");
}

static void make_room(void) {
  static memdecay_policy_action actions[kMostActions];
  memdecay_policy_plan_summary summary;
  memdecay_policy_request request;
  memdecay_policy_request_init(&request);
  request.budget_bytes = kBudgetBytes;
  do {
    check(memdecay_policy_plan(session, &request, actions, kMostActions, &summary), "plan");
    if (summary.actions > kMostActions) summary.actions = kMostActions;
    /* Here the cache would free or requantize the pages that the actions name. */
    check(memdecay_policy_apply(session, actions, summary.actions), "apply");
  } while (summary.actions > 0 && memdecay_policy_live_bytes(session) > kBudgetBytes);
}

int main(void) {
  memdecay_policy_options options;
  char text[400];
  int32_t goal;
  int32_t round;
  memdecay_policy_options_init(&options);
  options.bytes_per_token = kBytesPerToken;
  if (memdecay_policy_open(&options, &session, text, sizeof text) != MEMDECAY_OK) {
    fprintf(stderr, "open: %s\n", text);
    return 1;
  }
  append(120, MEMDECAY_REGION_SYSTEM, -1);
  goal = append(30, MEMDECAY_REGION_DECISION, -1);
  for (round = 0; round < 20; ++round) {
    append(20, MEMDECAY_REGION_TOOL, round);     /* the call */
    append(25, MEMDECAY_REGION_TOOL, round);     /* what is worth keeping of its result */
    append(90, MEMDECAY_REGION_ORDINARY, round); /* the rest of it */
    append(15, MEMDECAY_REGION_RECENT, -1);
    check(memdecay_policy_advance(session, round * 8.0), "advance");
    observe(goal);
    make_room();
  }
  check(memdecay_policy_explain(session, goal, text, sizeof text), "explain");
  printf("%d pages were made, %llu of %d bytes are held\n%s\n", memdecay_policy_page_count(session),
         (unsigned long long)memdecay_policy_live_bytes(session), kBudgetBytes, text);
  if (memdecay_policy_holds(session, goal)) puts("the goal is held");
  memdecay_policy_close(session);
  return 0;
}
