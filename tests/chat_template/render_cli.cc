// Renders templates for the differential scripts: JSON lines in, JSON lines out.
//
// In:  {"template", "context", "add_generation_prompt", "bos_token", "eos_token", "now"}; "now" is
//      seconds since the epoch, read as UTC.
// Out: {"text", "segments": [[begin, end, part, message]...]} or {"error", "code"}.
#include <ctime>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/chat_template/chat_template.h"

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const memdecay::RenderedPrompt& prompt) {
  Json segments = Json::array();
  for (const memdecay::Segment& segment : prompt.segments) {
    segments.push_back({segment.begin, segment.end, memdecay::prompt_part_name(segment.origin.part),
                        segment.origin.message});
  }
  return {{"text", prompt.text}, {"segments", segments}};
}

Json to_json(const memdecay::Status& status) {
  return {{"error", status.message()}, {"code", memdecay::status_code_name(status.code())}};
}

class Renderer {
 public:
  Json render(const Json& job) {
    const auto& source = job.at("template").get_ref<const std::string&>();
    auto& parsed = templates_[source];
    if (!parsed) {
      auto result = memdecay::ChatTemplate::parse(source);
      if (!result.ok()) return to_json(result.status());
      parsed = std::move(result).value();
    }
    memdecay::RenderOptions options;
    options.add_generation_prompt = job.value("add_generation_prompt", false);
    options.bos_token = job.value("bos_token", "");
    options.eos_token = job.value("eos_token", "");
    if (job.contains("now")) {
      const auto seconds = static_cast<std::time_t>(job.at("now").get<std::int64_t>());
      std::tm clock{};
      gmtime_r(&seconds, &clock);
      options.now = clock;
    }
    const auto prompt = parsed->render(job.at("context"), options);
    return prompt.ok() ? to_json(*prompt) : to_json(prompt.status());
  }

 private:
  std::map<std::string, std::unique_ptr<memdecay::ChatTemplate>> templates_;
};

}  // namespace

int main() {
  Renderer renderer;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << renderer.render(Json::parse(line)).dump() << "\n" << std::flush;
  }
  return 0;
}
