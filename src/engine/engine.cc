#include "engine/engine.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "core/steady_clock.h"
#include "core/units.h"
#include "model/tokenizer/text_stream.h"
#include "sys/cpu.h"

namespace memdecay {
namespace {

/// What a session's record and first table take, generously.
constexpr std::uint64_t kSessionBytes = 4096;

KvCacheConfig cache_config(const LayerGroups& groups, const EngineOptions& options) {
  KvCacheConfig config;
  for (const LayerGroups::Group& group : groups.groups)
    config.groups.push_back({group.layout, group.window});
  config.budget_bytes = options.kv_budget_bytes;
  config.cut_back_tokens = EngineOptions::kCutBackTokens;
  const bool budgeted = options.kv_budget_bytes != KvBudget::kUnlimited && options.policy != "none";
  const bool quantized = options.kv_forms != KvForms::kAuto && options.kv_forms != KvForms::kF16;
  if (budgeted || quantized || options.pools_for_all_forms)
    config.forms = {KvFormat::kInt8, KvFormat::kK8V4, KvFormat::kInt4};
  return config;
}

}  // namespace

/// A request between submission and its end.
struct Engine::Running {
  RequestId id;
  GenerationRequest request;
  Sampler sampler;
  TextStream text;
  GenerationResult result = {};
  std::vector<TokenId> waiting =
      {};  ///< tokens without keys and values yet: the prompt's rest, or the last token made
  std::int64_t submitted_ns = 0;
  std::int64_t first_token_ns = 0;
  std::int64_t evicted_before = 0;
  int most_new_tokens = 0;  ///< what was asked for, or what the context has room for
  bool cancelled = false;
  bool done = false;
};

Engine::Engine(const EngineOptions& options, int threads)
    : options_(options),
      kernels_(best_kernels()),
      team_(threads),
      planner_(options.batch_tokens, options.chunk_tokens) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(const EngineOptions& options) {
  MEMDECAY_RETURN_IF_ERROR(options.validate());
  MEMDECAY_RETURN_IF_ERROR(check_kernels_variable());
  std::unique_ptr<Engine> engine(
      new Engine(options, options.threads > 0 ? options.threads : usable_cores()));
  MEMDECAY_RETURN_IF_ERROR(engine->initialize());
  return engine;
}

Status Engine::initialize() {
  MEMDECAY_ASSIGN_OR_RETURN(model_, Model::load(options_.model_path, options_.precision, team_));
  const KvFormat format = options_.precision == Precision::kExact ? KvFormat::kF32 : KvFormat::kF16;
  groups_ = make_layer_groups(model_->config(), options_.page_tokens, format);
  context_tokens_ =
      options_.context_tokens > 0 ? options_.context_tokens : model_->config().context_length;
  Transformer::Options transformer_options;
  transformer_options.max_rows = options_.batch_tokens;
  MEMDECAY_ASSIGN_OR_RETURN(
      transformer_, Transformer::create(model_->config(), model_->weights(), groups_, kernels_,
                                        team_, transformer_options));
  MEMDECAY_ASSIGN_OR_RETURN(cache_, KvCache::create(cache_config(groups_, options_)));
  MEMDECAY_RETURN_IF_ERROR(initialize_prefixes());
  memory_.emplace(MemoryCoordinator::Surroundings{options_, *model_, *transformer_, groups_,
                                                  *cache_, shared_.get(), sessions_,
                                                  context_tokens_});
  return Status();
}

std::uint64_t Engine::kv_bytes_per_token() const {
  std::uint64_t bytes = 0;
  for (const LayerGroups::Group& group : groups_.groups) {
    bytes += group.layout.page_bytes() / static_cast<std::uint64_t>(group.layout.page_tokens);
  }
  return bytes;
}

std::uint64_t Engine::kv_bytes_read(const Session& session, int more) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < groups_.groups.size(); ++i) {
    const LayerGroups::Group& group = groups_.groups[i];
    const auto bytes_of = [&](KvFormat format, int tokens) {
      return group.layout.in(format).page_bytes() * static_cast<std::uint64_t>(tokens) /
             static_cast<std::uint64_t>(group.layout.page_tokens);
    };
    int seen = group.window > 0 ? group.window : std::numeric_limits<int>::max();
    bytes += bytes_of(group.layout.format, std::min(more, seen));
    seen -= std::min(more, seen);
    const PagedKvView view = session.sequence_->view(LayerGroupId(static_cast<int>(i)));
    for (auto page = view.pages.rbegin(); page != view.pages.rend() && seen > 0; ++page) {
      bytes += bytes_of(page->format, std::min(page->filled, seen));
      seen -= std::min(page->filled, seen);
    }
  }
  return bytes;
}

Result<std::unique_ptr<Session>> Engine::open_session(const SessionOptions& options) {
  SequenceHandle sequence = cache_->try_create_sequence();
  if (sequence == nullptr && memory_->prefixes_give_way(kSessionBytes))
    sequence = cache_->try_create_sequence();
  if (sequence == nullptr) {
    return make_status(StatusCode::kResourceExhausted,
                       "the KV budget of {} has no room for another session",
                       format_bytes(cache_->budget().limit_bytes()));
  }
  std::unique_ptr<Session> session(new Session(std::move(sequence), sessions_, shared_.get()));
  session->cache_salt_ = options.cache_salt;
  MEMDECAY_RETURN_IF_ERROR(memory_->add(*session, options));
  return session;
}

Result<std::unique_ptr<Session>> Engine::fork_session(const Session& session) {
  SequenceHandle sequence = session.sequence_->try_fork();
  const std::uint64_t table_bytes = session.sequence_->memory().table_bytes;
  if (sequence == nullptr && memory_->prefixes_give_way(table_bytes))
    sequence = session.sequence_->try_fork();
  if (sequence == nullptr) {
    return make_status(StatusCode::kResourceExhausted,
                       "the KV budget of {} has no room for a fork of this session",
                       format_bytes(cache_->budget().limit_bytes()));
  }
  std::unique_ptr<Session> fork(new Session(std::move(sequence), sessions_, shared_.get()));
  fork->tokens_ = session.tokens_;
  fork->cache_salt_ = session.cache_salt_;
  fork->remembered_ = session.remembered_;
  if (!session.memory_.has_value()) return fork;
  fork->memory_options_ = session.memory_options_;
  fork->probes_ = session.probes_;
  fork->pin_sharers_ = session.pin_sharers_;
  fork->memory_.emplace(session.memory_->fork());
  return fork;
}

Status Engine::check_request(const GenerationRequest& request) const {
  MEMDECAY_CHECK(request.session != nullptr);
  if (request.session->busy_) {
    return Status(StatusCode::kInvalidArgument, "this session already runs a request");
  }
  if (request.prompt.empty())
    return Status(StatusCode::kInvalidArgument, "the prompt has no tokens");
  if (request.prompt.size() > static_cast<std::size_t>(context_tokens_) &&
      !outgrows_context(*request.session)) {
    return make_status(StatusCode::kInvalidArgument,
                       "the prompt has {} tokens, but the context holds {}", request.prompt.size(),
                       context_tokens_);
  }
  if (request.max_new_tokens < 0) {
    return make_status(StatusCode::kInvalidArgument, "max_new_tokens is {}, but must be 0 or more",
                       request.max_new_tokens);
  }
  MEMDECAY_RETURN_IF_ERROR(check_tokens(request.prompt));
  MEMDECAY_RETURN_IF_ERROR(request.sampling.validate());
  // What can never fit is refused now, not after minutes of work. What is evicted always fits.
  if (request.session->evicts()) return Status();
  const KvBudget& budget = cache_->budget();
  const std::uint64_t least = least_bytes(static_cast<int>(request.prompt.size()));
  if (least <= budget.limit_bytes() - cache_->overhead_bytes()) return Status();
  return make_status(
      StatusCode::kResourceExhausted,
      "the keys and values of {} prompt tokens need {}, but the KV budget is {} ({} of it for "
      "tables)",
      request.prompt.size(), format_bytes(least), format_bytes(budget.limit_bytes()),
      format_bytes(cache_->overhead_bytes()));
}

Status Engine::check_tokens(std::span<const TokenId> tokens) const {
  const int vocab_size = model_->config().vocab_size;
  for (const TokenId token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    return make_status(StatusCode::kInvalidArgument, "token {} is outside the vocabulary of {}",
                       token, vocab_size);
  }
  return Status();
}

std::uint64_t Engine::least_bytes(int tokens) const {
  std::uint64_t bytes = 0;
  for (const KvLayerGroup& group : cache_->groups()) {
    const int held = group.window > 0 ? std::min(tokens, group.window) : tokens;
    const int pages = (held + group.layout.page_tokens - 1) / group.layout.page_tokens;
    bytes += static_cast<std::uint64_t>(pages) * PagePool::stride_bytes_for(group.layout);
  }
  return bytes;
}

Result<RequestId> Engine::submit(GenerationRequest request) {
  MEMDECAY_RETURN_IF_ERROR(check_request(request));
  Session& session = *request.session;
  label(session, std::move(request.labels));
  PrefixMatch match = match_prefix(session, request.prompt);
  const int again = memory_->discard_tail(session, request.prompt.size() - session.tokens_.size());
  session.busy_ = true;
  const SamplingOptions sampling = request.sampling;
  const RequestId id(next_request_++);
  auto running = std::make_unique<Running>(Running{
      id, std::move(request), Sampler(sampling, kernels_), TextStream(model_->tokenizer())});
  running->submitted_ns = steady_now_ns();
  const auto& prompt = running->request.prompt;
  running->result.prompt_tokens = static_cast<int>(prompt.size());
  running->most_new_tokens = running->request.max_new_tokens;
  if (!outgrows_context(session)) {
    running->most_new_tokens =
        std::min(running->most_new_tokens, context_tokens_ - running->result.prompt_tokens);
  }
  running->result.reused_tokens = static_cast<int>(session.tokens_.size());
  running->result.cached_tokens = std::min(match.cached_tokens, running->result.reused_tokens);
  running->result.miss = std::move(match.miss);
  running->result.recomputed_tokens = again;
  running->evicted_before = session.memory_ ? session.memory_->evicted_tokens() : 0;
  running->waiting.assign(prompt.begin() + running->result.reused_tokens, prompt.end());
  memory_->prepare_turn(
      session, running->waiting.size() + static_cast<std::size_t>(running->most_new_tokens));
  running_.push_back(std::move(running));
  return id;
}

void Engine::label(Session& session, PromptLabels labels) {
  if (session.memory_.has_value()) session.memory_->label(std::move(labels));
}

void Engine::cancel(RequestId id) {
  for (const auto& running : running_) {
    if (running->id == id) running->cancelled = true;
  }
}

bool Engine::step() {
  for (std::size_t i = 0; i < running_.size(); ++i) {  // on_text may submit, so no iterators
    if (running_[i]->cancelled) finish(*running_[i], FinishReason::kCancelled, Status());
  }
  sweep();
  if (running_.empty()) return false;
  std::vector<PassSlice> slices = plan_pass();
  reserve(slices);
  if (!slices.empty()) {
    const Status status = run_pass(slices);
    if (status.ok()) emit(slices);
    for (const PassSlice& slice : slices) {
      if (!status.ok()) finish(*slice.running, FinishReason::kFailed, status);
    }
    memory_->tend(rows_of(slices));
  }
  sweep();
  return true;
}

std::vector<Engine::PassSlice> Engine::plan_pass() {
  std::vector<WaitingTokens> waiting;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    waiting.push_back({i, static_cast<int>(running_[i]->waiting.size())});
  }
  std::vector<PassSlice> slices;
  for (const PlannedTokens& planned : planner_.plan(waiting)) {
    Running& running = *running_[planned.request];
    const auto tokens =
        std::span<const TokenId>(running.waiting).first(static_cast<std::size_t>(planned.tokens));
    slices.push_back({running.request.session, tokens, &running});
  }
  return slices;
}

std::size_t Engine::rows_of(std::span<const PassSlice> slices) {
  std::size_t rows = 0;
  for (const PassSlice& slice : slices) rows += slice.tokens.size();
  return rows;
}

/// Makes room for every slice, for less of a long one where the budget is tight; a request whose
/// slice finds none is over.
void Engine::reserve(std::vector<PassSlice>& slices) {
  std::erase_if(slices, [&](PassSlice& slice) {
    const int wanted = static_cast<int>(slice.tokens.size());
    Room room;
    const int tokens = memory_->make_room_for_some(*slice.session, wanted, room);
    slice.tokens = slice.tokens.first(static_cast<std::size_t>(tokens));
    if (tokens > 0) return false;
    // An answer that finds no more places is as long as it can be.
    const bool answers = room && !slice.running->result.tokens.empty();
    finish(*slice.running, answers ? FinishReason::kLength : FinishReason::kNoMemory,
           answers ? Status() : memory_->no_room(*slice.session, 1, room));
    return true;
  });
}

Status Engine::run_pass(std::span<const PassSlice> slices) {
  std::vector<TokenId> tokens;
  std::vector<std::vector<PagedKvView>> views;
  std::vector<SequenceSlice> sequence_slices;
  std::vector<PassEvidence> evidence(slices.size());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const PassSlice& slice = slices[i];
    auto& slice_views = views.emplace_back();
    for (std::size_t group = 0; group < groups_.groups.size(); ++group) {
      slice_views.push_back(slice.session->sequence_->view(LayerGroupId(static_cast<int>(group))));
    }
    SequenceSlice& out = sequence_slices.emplace_back();
    out.first_row = static_cast<int>(tokens.size());
    out.rows = static_cast<int>(slice.tokens.size());
    out.first_position = static_cast<Position>(slice.session->tokens_.size());
    out.rope_offset = slice.session->sequence_->rope_offset();
    tokens.insert(tokens.end(), slice.tokens.begin(), slice.tokens.end());
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    sequence_slices[i].views = views[i];
    memory_->ask_evidence(*slices[i].session, evidence[i], sequence_slices[i]);
  }
  const Status status = transformer_->forward({tokens, sequence_slices});
  for (std::size_t i = 0; i < slices.size(); ++i) {
    Session& session = *slices[i].session;
    if (status.ok()) {
      session.tokens_.insert(session.tokens_.end(), slices[i].tokens.begin(),
                             slices[i].tokens.end());
      memory_->tell_evidence(session, evidence[i], sequence_slices[i]);
      remember_prefix(session);
    } else {
      MEMDECAY_CHECK(
          session.sequence_->try_truncate(static_cast<Position>(session.tokens_.size())));
      memory_->sync(session);
    }
  }
  if (!status.ok()) return status;
  for (const PassSlice& slice : slices) memory_->take_key_evidence(*slice.session);
  return status;
}

void Engine::emit(std::span<const PassSlice> slices) {
  const auto vocab_size = static_cast<std::size_t>(model_->config().vocab_size);
  std::vector<int> rows;
  std::vector<Running*> ready;
  int row = 0;
  const auto flush = [&] {
    if (rows.empty()) return;
    const std::span<const float> logits = transformer_->logits(rows);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      accept_logits(*ready[i], logits.subspan(i * vocab_size, vocab_size));
    }
    rows.clear();
    ready.clear();
  };
  for (const PassSlice& slice : slices) {
    const int count = static_cast<int>(slice.tokens.size());
    row += count;
    Running& running = *slice.running;
    running.result.computed_tokens += count;
    running.waiting.erase(running.waiting.begin(), running.waiting.begin() + count);
    if (!running.waiting.empty()) continue;
    rows.push_back(row - 1);
    ready.push_back(&running);
    if (static_cast<int>(rows.size()) == transformer_->max_logit_rows()) flush();
  }
  flush();
}

void Engine::accept_logits(Running& running, std::span<const float> logits) {
  const std::int64_t now = steady_now_ns();
  GenerationResult& result = running.result;
  if (running.first_token_ns == 0) {
    running.first_token_ns = now;
    result.prompt_ns = now - running.submitted_ns;
  } else {
    result.step_ns.push_back(now - running.first_token_ns - result.decode_ns);
  }
  result.decode_ns = now - running.first_token_ns;
  if (running.most_new_tokens == 0) return finish(running, FinishReason::kLength, Status());
  const TokenId token = running.sampler.sample(logits);
  if (!running.request.ignore_end && model_->is_end(token)) {
    result.end_token = token;
    return finish(running, FinishReason::kStop, Status());
  }
  result.tokens.push_back(token);
  take_text(running, running.text.append(token));
  if (static_cast<int>(result.tokens.size()) >= running.most_new_tokens) {
    return finish(running, FinishReason::kLength, Status());
  }
  running.waiting.assign(1, token);
}

void Engine::take_text(Running& running, const std::string& text) {
  if (text.empty()) return;
  running.result.text += text;
  if (running.request.on_text) running.request.on_text(text);
}

void Engine::finish(Running& running, FinishReason reason, Status status) {
  if (running.done) return;
  running.done = true;
  take_text(running, running.text.flush());
  running.result.reason = reason;
  running.result.status = std::move(status);
  const Session& session = *running.request.session;
  if (session.memory_.has_value()) {
    running.result.evicted_tokens = session.memory_->evicted_tokens() - running.evicted_before;
  }
  running.request.session->busy_ = false;
}

/// Takes finished requests out, then tells their owners: a callback may submit again.
void Engine::sweep() {
  std::vector<std::unique_ptr<Running>> finished;
  for (auto& running : running_) {
    if (running->done) finished.push_back(std::move(running));
  }
  std::erase(running_, nullptr);
  for (const auto& running : finished) {
    if (running->request.on_done) running->request.on_done(running->result);
  }
}

Result<GenerationResult> Engine::generate(GenerationRequest request) {
  std::optional<GenerationResult> result;
  const auto user_done = std::move(request.on_done);
  request.on_done = [&](const GenerationResult& done) {
    result = done;
    if (user_done) user_done(done);
  };
  MEMDECAY_ASSIGN_OR_RETURN(const RequestId id, submit(std::move(request)));
  static_cast<void>(id);
  while (!result) step();
  return *result;
}

Status Engine::shrink(Session& session, std::uint64_t bytes) {
  MEMDECAY_CHECK(!session.busy_);
  return memory_->shrink(session, bytes);
}

std::vector<PositionRun> Engine::held_tokens(const Session& session) const {
  const auto group = group_without_window();
  return group.has_value() ? session.sequence_->table(*group).held() : std::vector<PositionRun>();
}

}  // namespace memdecay
