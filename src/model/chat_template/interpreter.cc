#include "model/chat_template/interpreter.h"

#include "model/chat_template/operators.h"
#include "model/chat_template/python_text.h"

namespace memdecay::jinja {

Value* Scope::find(std::string_view name) {
  for (Scope* scope = this; scope != nullptr; scope = scope->parent) {
    for (auto& [candidate, value] : scope->variables) {
      if (candidate == name) return &value;
    }
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [candidate, slot] : variables) {
    if (candidate == name) {
      slot = std::move(value);
      return;
    }
  }
  variables.emplace_back(std::string(name), std::move(value));
}

Text Interpreter::render(const TemplateBody& body) {
  OutputGuard output(*this);
  run(body.block);
  return output.take();
}

Interpreter::Flow Interpreter::run(const Block& block) {
  const Runtime::Level level(runtime_);
  for (const StmtPtr& stmt : block) {
    const Flow flow = run(*stmt);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::run(const Stmt& stmt) {
  runtime_.charge_work(1);
  runtime_.set_line(stmt.line);
  switch (stmt.kind) {
    case StmtKind::kText:
      emit(stmt.text);
      break;
    case StmtKind::kPrint:
      emit(to_text(runtime_, evaluate(*stmt.expr)));
      break;
    case StmtKind::kIf:
      return run(truthy(evaluate(*stmt.expr)) ? stmt.body : stmt.otherwise);
    case StmtKind::kFor:
      return run_for(stmt);
    case StmtKind::kSet:
      run_set(stmt);
      break;
    case StmtKind::kSetBlock:
      run_set_block(stmt);
      break;
    case StmtKind::kWith:
      return run_with(stmt);
    case StmtKind::kMacro:
      scope_->set(stmt.macro.name, make_macro(runtime_, *this, stmt.macro, scope_));
      break;
    case StmtKind::kCallBlock:
      run_call_block(stmt);
      break;
    case StmtKind::kFilterBlock:
      return run_filter_block(stmt);
    case StmtKind::kGeneration:
      run_generation(stmt);
      break;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

void Interpreter::emit(const Text& text) {
  runtime_.charge_characters(text.size());
  if (output_->size() + text.size() > runtime_.limits().output_characters) {
    runtime_.fail(StatusCode::kResourceExhausted,
                  fmt::format("the prompt is longer than {} characters",
                              runtime_.limits().output_characters));
  }
  if (message_ < 0) return output_->append(text);
  const OriginId markup = runtime_.origin_id({PromptPart::kMarkup, message_});
  std::size_t begin = 0;
  for (const Text::Piece& piece : text.pieces()) {
    if (piece.origin == kTemplateOrigin) {
      output_->append(std::u32string_view(text.chars()).substr(begin, piece.end - begin), markup);
    } else {
      output_->append_range(text, begin, piece.end);
    }
    begin = piece.end;
  }
}

std::vector<Value> Interpreter::loop_items(const Stmt& stmt) {
  std::vector<Value> items = iterate(runtime_, evaluate(*stmt.expr));
  if (!stmt.condition) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    const ScopeGuard scope(*this, scope_);
    assign(stmt.target, item);
    if (truthy(evaluate(*stmt.condition))) kept.push_back(std::move(item));
  }
  return kept;
}

Interpreter::Flow Interpreter::run_for(const Stmt& stmt) {
  auto* loop = runtime_.make<LoopObject>();
  loop->items = loop_items(stmt);
  const std::int32_t outer_message = message_;
  bool finished_one = false;
  for (; loop->index < loop->items.size(); ++loop->index) {
    const ScopeGuard scope(*this, scope_);
    const Value& item = loop->items[loop->index];
    scope_->set("loop", Value::of(loop));
    assign(stmt.target, item);
    if (item.is(Kind::kDict) && item.dict().message >= 0) message_ = item.dict().message;
    const Flow flow = run(stmt.body);
    message_ = outer_message;
    if (flow == Flow::kBreak) break;
    // jinja2 notes an iteration at the end of the body, so `continue` leaves none behind.
    if (flow == Flow::kNormal) finished_one = true;
  }
  if (finished_one || stmt.otherwise.empty()) return Flow::kNormal;
  const ScopeGuard scope(*this, scope_);
  return run(stmt.otherwise);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    const std::vector<Value> parts = iterate(runtime_, value);
    if (parts.size() != target.targets.size()) {
      runtime_.fail_argument("cannot unpack {} values into {} names", parts.size(),
                             target.targets.size());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) assign(target.targets[i], parts[i]);
    return;
  }
  if (target.member.empty()) return scope_->set(target.name, value);
  Value* holder = scope_->find(target.name);
  if (holder == nullptr || !holder->is(Kind::kNamespace)) {
    runtime_.fail_argument("cannot set a member of '{}', which is not a namespace", target.name);
  }
  if (target.member[0] == '_') {
    runtime_.fail_argument("a namespace has no members that start with _");
  }
  set_key(runtime_, &holder->dict(), Value::string(decode_utf8(target.member).value_or(U"")),
          value);
}

void Interpreter::run_set(const Stmt& stmt) {
  const Value value = evaluate(*stmt.expr);
  assign(stmt.target, value);
  // `{% set message = messages[i] %}` in a loop over numbers: what follows belongs to it.
  const bool in_loop = scope_->parent != nullptr && scope_->find("loop") != nullptr;
  if (in_loop && message_ < 0 && value.is(Kind::kDict) && value.dict().message >= 0) {
    message_ = value.dict().message;
  }
}

void Interpreter::run_set_block(const Stmt& stmt) {
  OutputGuard output(*this);
  {
    const ScopeGuard scope(*this, scope_);
    run(stmt.body);
  }
  Value value = Value::string(output.take());
  if (stmt.filter) value = apply_filter(*stmt.filter, value);
  assign(stmt.target, value);
}

Interpreter::Flow Interpreter::run_with(const Stmt& stmt) {
  std::vector<Value> values;
  for (const auto& [target, expr] : stmt.assignments) values.push_back(evaluate(*expr));
  const ScopeGuard scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(stmt.assignments[i].first, values[i]);
  return run(stmt.body);
}

void Interpreter::run_call_block(const Stmt& stmt) {
  const Value caller = make_macro(runtime_, *this, stmt.macro, scope_);
  emit(to_text(runtime_, evaluate_call(*stmt.expr, &caller)));
}

Interpreter::Flow Interpreter::run_filter_block(const Stmt& stmt) {
  Flow flow = Flow::kNormal;
  Text text;
  {
    OutputGuard output(*this);
    const ScopeGuard scope(*this, scope_);
    flow = run(stmt.body);
    text = output.take();
  }
  emit(to_text(runtime_, apply_filter(*stmt.filter, Value::string(std::move(text)))));
  return flow;
}

void Interpreter::run_generation(const Stmt& stmt) {
  const ScopeGuard scope(*this, scope_);
  run(stmt.body);
}

}  // namespace memdecay::jinja
