#include "eval/runs/flat_transcript.h"

#include <string_view>
#include <utility>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

Role role_of(std::string_view name) {
  if (name == "system") return Role::kSystem;
  if (name == "assistant") return Role::kAssistant;
  return name == "tool" ? Role::kTool : Role::kUser;
}

std::string head_of(Role role, TranscriptStyle style) {
  constexpr std::array<const char*, 4> kHeadings = {"System", "User", "Assistant", "Tool"};
  constexpr std::array<const char*, 4> kRoles = {"system", "user", "assistant", "tool"};
  const auto index = static_cast<std::size_t>(role);
  if (style == TranscriptStyle::kHeadings) return std::string(kHeadings[index]) + ": ";
  if (style == TranscriptStyle::kMarkers) return std::string("<|im_start|>") + kRoles[index] + "\n";
  return "";
}

const char* tail_of(TranscriptStyle style) {
  return style == TranscriptStyle::kMarkers ? "<|im_end|>\n" : "\n\n";
}

std::string text_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

class Writer {
 public:
  Writer(Role role, std::int32_t message) : role_(role), message_(message) {}

  void write(Part part, std::string_view text) {
    if (text.empty()) return;
    const std::size_t begin = out_.text.size();
    out_.text += text;
    if (!out_.pieces.empty() && out_.pieces.back().part == part) {
      out_.pieces.back().end = out_.text.size();
    } else {
      out_.pieces.push_back({role_, part, message_, begin, out_.text.size()});
    }
  }
  Transcript take() { return std::move(out_); }

 private:
  Role role_;
  std::int32_t message_;
  Transcript out_;
};

Transcript write_message(const ordered_json& message, std::int32_t number, TranscriptStyle style) {
  const Role role = role_of(text_of(message.at("role")));
  Writer writer(role, number);
  Part last = role == Role::kTool ? Part::kToolResult : Part::kText;
  writer.write(last, head_of(role, style));
  const auto reasoning = message.find("reasoning_content");
  if (reasoning != message.end() && !text_of(*reasoning).empty())
    writer.write(Part::kReasoning, text_of(*reasoning) + "\n");
  writer.write(last, text_of(message.at("content")));
  const auto calls = message.find("tool_calls");
  if (calls != message.end() && calls->is_array()) {
    for (const ordered_json& call : *calls) {
      last = Part::kToolCall;
      writer.write(last, "\n" + call.value("function", ordered_json())
                                    .dump(-1, ' ', false, ordered_json::error_handler_t::replace));
    }
  }
  writer.write(last, tail_of(style));
  return writer.take();
}

}  // namespace

const char* transcript_style_name(TranscriptStyle style) {
  constexpr std::array<const char*, 3> kNames = {"bare", "headings", "markers"};
  return kNames[static_cast<std::size_t>(style)];
}

Transcript flat_transcript(const ordered_json& messages, TranscriptStyle style,
                           std::size_t max_bytes) {
  Transcript all;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Transcript one = write_message(messages[i], static_cast<std::int32_t>(i), style);
    if (i >= 2 && all.text.size() + one.text.size() > max_bytes) break;
    for (TranscriptPiece& piece : one.pieces) {
      piece.begin += all.text.size();
      piece.end += all.text.size();
      all.pieces.push_back(piece);
    }
    all.text += one.text;
  }
  return all;
}

}  // namespace memdecay
