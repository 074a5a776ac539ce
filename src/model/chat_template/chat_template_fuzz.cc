// Any bytes as a template and as a context: a status or a prompt whose segments cover its text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "model/chat_template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using Json = nlohmann::ordered_json;
  // A zero byte parts the template from the context.
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\0');
  const std::string source(input.substr(0, cut));
  Json context = Json::parse(
      R"({"messages": [{"role": "user", "content": "H\u00e9"}, 
          {"role": "assistant", "content": null, "tool_calls": [
          {"function": {"name": "f", "arguments": {"x": [1, 2.5, true]}}}]}]})");
  if (cut != std::string_view::npos) {
    Json parsed = Json::parse(input.substr(cut + 1), nullptr, false);
    if (parsed.is_object()) context = std::move(parsed);
  }
  auto parsed = memdecay::ChatTemplate::parse(source);
  if (!parsed.ok()) return 0;
  memdecay::RenderOptions options;
  options.bos_token = "<s>";
  options.now.emplace();
  options.limits.work = 100'000;
  options.limits.characters = 1'000'000;
  options.limits.output_characters = 100'000;
  const auto prompt = (*parsed)->render(context, options);
  if (!prompt.ok()) return 0;
  std::size_t at = 0;
  for (const memdecay::Segment& segment : prompt->segments) {
    MEMDECAY_CHECK(segment.begin == at && segment.end > at);
    at = segment.end;
  }
  MEMDECAY_CHECK(at == prompt->text.size());
  return 0;
}
