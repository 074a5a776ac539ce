/* The policy of MemDecay as a library of its own: which pages of a KV cache to demote or drop.
 * (C11)
 *
 * It knows tokens, regions and bytes, and no model, no engine, no memory: the caller owns the cache
 * and carries plans out. The library is libmemdecay-policy.
 *
 * Conventions
 *  1. Every function that can fail returns a memdecay_status; 0 is success. Nothing else ends the
 *     process on a caller's mistake that can be seen, and no exception leaves the library.
 *  2. After a failure memdecay_policy_message() is one sentence that says why, valid until the next
 *     call with the same session; the session is as it was, but after MEMDECAY_OUT_OF_MEMORY it can
 *     only be closed. Where there is no session yet, the sentence is in the buffer that the call
 *     was given.
 *  3. Structs for input begin with struct_size: set it to sizeof the struct. The *_init functions
 *     do that and fill in the defaults; given NULL they do nothing. Members are only ever added at
 *     the end, so that a program compiled before them goes on working: they have their defaults.
 *  4. A session is opaque. Whoever opens it closes it; closing NULL does nothing.
 *  5. A session belongs to one thread at a time. Different sessions share nothing.
 *  6. Pages are small numbers that the session gives out, growing from 0, never used twice. A page
 *     holds at most page_tokens tokens, alike in region, round, item and pin.
 *  7. The library has no clock: appended tokens are its steps, and seconds are told.
 *  8. Sizes are bytes; arrays are a pointer and a count, and NULL goes with count 0.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct memdecay_policy_session memdecay_policy_session;

typedef enum memdecay_status {
  MEMDECAY_OK = 0,
  MEMDECAY_INVALID_ARGUMENT = 1,
  MEMDECAY_NOT_FOUND = 2,
  MEMDECAY_OUT_OF_MEMORY = 3
} memdecay_status;

typedef enum memdecay_region {
  MEMDECAY_REGION_SYSTEM = 0,
  MEMDECAY_REGION_DECISION = 1,
  MEMDECAY_REGION_TOOL = 2,
  MEMDECAY_REGION_RECENT = 3,
  MEMDECAY_REGION_ORDINARY = 4
} memdecay_region;

typedef enum memdecay_evidence_kind {
  MEMDECAY_EVIDENCE_ATTENTION_MASS = 0, /* share of each query's attention, summed over a step's */
  MEMDECAY_EVIDENCE_DELETION_ERROR = 1, /* |change of the output| / |output| without the page */
  MEMDECAY_EVIDENCE_KEY_SIMILARITY = 2, /* mean cosine to the mean key, -1..1 */
  MEMDECAY_EVIDENCE_LAST_QUERY_MASS = 3 /* share of the latest query's attention, 0..1 (tova) */
} memdecay_evidence_kind;

/* Who asked: the assistant's reasoning, its calls and text, a tool result being read, other. */
typedef enum memdecay_query_phase {
  MEMDECAY_PHASE_THINK = 0,
  MEMDECAY_PHASE_ACT = 1,
  MEMDECAY_PHASE_TOOL = 2,
  MEMDECAY_PHASE_OTHER = 3
} memdecay_query_phase;

typedef enum memdecay_page_form {
  MEMDECAY_FORM_F16 = 0,
  MEMDECAY_FORM_INT8 = 1,
  MEMDECAY_FORM_K8V4 = 2,
  MEMDECAY_FORM_INT4 = 3,
  MEMDECAY_FORM_GONE = 4 /* in an action: drop the page */
} memdecay_page_form;

typedef struct memdecay_policy_options {
  size_t struct_size;
  const char* policy; /* "memdecay", "memdecay-classic", "window", "sinks", "uniform", "recompute",
                         "h2o", "tova", "keydiff", "lru", "random" */
  uint64_t bytes_per_token; /* of keys and values in fp16; must be set */
  int32_t page_tokens;
  int32_t sink_tokens;
  int32_t newest_pages;   /* never planned */
  int32_t lag_rounds;     /* rounds that gentle plans leave (memdecay only) */
  double floor_share;     /* of instructions and the latest rounds' results (memdecay only) */
  uint64_t pin_cap_bytes; /* pins above it are refused, and explained */
  int32_t protect_prefix; /* not 0: system text is pinned */
  int32_t demote;         /* not 0: plans demote before they drop */
  uint64_t random_seed;
} memdecay_policy_options;

typedef struct memdecay_policy_span {
  size_t struct_size;
  int32_t tokens; /* must be set */
  int32_t region; /* memdecay_region */
  int32_t pinned;
  int32_t tool_round;   /* from 0; -1: none */
  int32_t tool_core;    /* not 0: a call, or what is worth keeping of a result */
  int32_t item;         /* instruction or live result, from 0; -1: none */
  int32_t exact_tokens; /* how many of the tokens are exact values */
} memdecay_policy_span;

typedef struct memdecay_policy_request {
  size_t struct_size;
  uint64_t budget_bytes; /* must be set */
  int32_t gentle;        /* not 0: only what scores far below the threshold */
} memdecay_policy_request;

typedef struct memdecay_policy_action {
  int32_t page;
  int32_t form; /* memdecay_page_form */
  uint64_t freed_bytes;
} memdecay_policy_action;

typedef struct memdecay_policy_plan_summary {
  size_t actions; /* how many the plan has, whatever the capacity was */
  uint64_t freed_bytes;
  uint64_t missing_bytes; /* above the budget still: all the rest is protected */
} memdecay_policy_plan_summary;

void memdecay_policy_options_init(memdecay_policy_options* options);
void memdecay_policy_span_init(memdecay_policy_span* span);
void memdecay_policy_request_init(memdecay_policy_request* request);

/* message may be NULL; else it receives at most message_size bytes, always ended by a 0. */
memdecay_status memdecay_policy_open(const memdecay_policy_options* options,
                                     memdecay_policy_session** session, char* message,
                                     size_t message_size);
void memdecay_policy_close(memdecay_policy_session* session);
const char* memdecay_policy_message(const memdecay_policy_session* session);

/* Adds tokens; first_page (may be NULL) receives the page of the first of them. */
memdecay_status memdecay_policy_append(memdecay_policy_session* session,
                                       const memdecay_policy_span* span, int32_t* first_page);
/* Evidence about pages; pages that are gone are passed over. */
memdecay_status memdecay_policy_observe(memdecay_policy_session* session, int32_t kind,
                                        int32_t phase, const int32_t* pages, const float* values,
                                        size_t count);
/* Tells the time in seconds since any fixed moment; it must not fall. */
memdecay_status memdecay_policy_advance(memdecay_policy_session* session, double seconds);
/* Plans and changes nothing: at most `capacity` actions are written, and the summary (may be NULL)
 * says how many there are; the same call with more room gives the same plan. */
memdecay_status memdecay_policy_plan(memdecay_policy_session* session,
                                     const memdecay_policy_request* request,
                                     memdecay_policy_action* actions, size_t capacity,
                                     memdecay_policy_plan_summary* summary);
/* Says that actions were carried out. All or nothing. */
memdecay_status memdecay_policy_apply(memdecay_policy_session* session,
                                      const memdecay_policy_action* actions, size_t count);
/* An item is over: its floor is released. */
memdecay_status memdecay_policy_end_item(memdecay_policy_session* session, int32_t item);
/* Why the page is where it is, in a sentence of at most size - 1 bytes. */
memdecay_status memdecay_policy_explain(memdecay_policy_session* session, int32_t page, char* text,
                                        size_t size);
uint64_t memdecay_policy_live_bytes(const memdecay_policy_session* session);
/* Pages given out so far: page numbers are below it. */
int32_t memdecay_policy_page_count(const memdecay_policy_session* session);
/* 1 where the page was neither dropped nor never given out. */
int32_t memdecay_policy_holds(const memdecay_policy_session* session, int32_t page);

#ifdef __cplusplus
}
#endif
