// Our renderings of templates/*.jinja against those that jinja2 made (make_golden.py).
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "model/chat_template/chat_template.h"

namespace memdecay {
namespace {

using Json = nlohmann::ordered_json;

std::string read_file(const std::string& name) {
  std::ifstream in(std::string(MEMDECAY_GOLDEN_DIR) + "/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class GoldenTest : public testing::TestWithParam<const char*> {};

TEST_P(GoldenTest, EqualsJinja2) {
  const std::string name = GetParam();
  const auto parsed = ChatTemplate::parse(read_file("templates/" + name + ".jinja"));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const Json jobs = Json::parse(read_file("golden/shapes.json"));
  const Json golden = Json::parse(read_file("golden/" + name + ".json"));
  EXPECT_GE(golden.size(), 30U);
  for (const auto& [shape, expected] : golden.items()) {
    const Json& job = jobs.at(shape);
    RenderOptions options;
    options.add_generation_prompt = job.at("add_generation_prompt").get<bool>();
    options.bos_token = job.at("bos_token").get<std::string>();
    options.eos_token = job.at("eos_token").get<std::string>();
    const auto seconds = static_cast<std::time_t>(job.at("now").get<std::int64_t>());
    options.now.emplace();
    gmtime_r(&seconds, &*options.now);
    const auto prompt = (*parsed)->render(job.at("context"), options);
    if (expected.contains("text")) {
      ASSERT_TRUE(prompt.ok()) << shape << ": " << prompt.status().message();
      EXPECT_EQ(prompt->text, expected.at("text").get<std::string>()) << shape;
    } else {
      EXPECT_EQ(prompt.status().code(), StatusCode::kInvalidArgument)
          << shape << ": jinja2 says " << expected.dump();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Templates, GoldenTest,
                         testing::Values("tools_xml", "bracketed", "typescript", "constructs"));

}  // namespace
}  // namespace memdecay
