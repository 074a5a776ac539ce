#include "policy/policies/policy_spec.h"

#include <gmock/gmock.h>

namespace memdecay {
namespace {

using testing::HasSubstr;

TEST(PolicySpec, ReadsNameAndSettings) {
  PolicyOptions options;
  const std::string_view spec =
      "memdecay:beta=0.25;assistant_weight=8;lowest_exact=int4;newest_pages=3;region_weight=0.5";
  EXPECT_EQ(policy_spec_name(spec), "memdecay");
  ASSERT_TRUE(apply_policy_spec(spec, options).ok());
  EXPECT_EQ(options.memdecay.beta, 0.25);
  EXPECT_EQ(options.memdecay.evidence.phase_weights, (std::array<double, 4>{8, 8, 1, 1}));
  EXPECT_EQ(options.memdecay.ladder.lowest_exact, PageForm::kInt4);
  EXPECT_EQ(options.memdecay.protection.newest_pages, 3);
  EXPECT_EQ(options.memdecay.region_weight, 0.5);
}

TEST(PolicySpec, WordsAreChosenByName) {
  PolicyOptions options;
  ASSERT_TRUE(apply_policy_spec("memdecay:evidence=mass;lowest_pinned=int4", options).ok());
  EXPECT_EQ(options.memdecay.evidence_kind, EvidenceKind::kAttentionMass);
  EXPECT_EQ(options.memdecay.ladder.lowest_pinned, PageForm::kInt4);
  EXPECT_THAT(std::string(apply_policy_spec("memdecay:evidence=luck", options).message()),
              HasSubstr("one of mass, error"));
}

TEST(PolicySpec, ANameAloneChangesNothing) {
  PolicyOptions options;
  EXPECT_EQ(policy_spec_name("window"), "window");
  ASSERT_TRUE(apply_policy_spec("window", options).ok());
  EXPECT_EQ(options.memdecay.exact_bonus, MemdecayOptions().exact_bonus);
}

TEST(PolicySpec, EveryNumberHasARange) {
  for (const std::string_view name : policy_setting_names()) {
    PolicyOptions options;
    for (const std::string_view bad : {"", "-1", "nan", "1e300", "1x", "int2"}) {
      const Status status = apply_policy_setting(name, bad, options);
      EXPECT_FALSE(status.ok()) << name << " = " << bad;
      EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(name)));
    }
  }
}

TEST(PolicySpec, SaysWhatIsWrong) {
  PolicyOptions options;
  EXPECT_THAT(std::string(apply_policy_spec("memdecay:speed=1", options).message()),
              HasSubstr("no setting \"speed\"; there are beta"));
  EXPECT_THAT(std::string(apply_policy_spec("memdecay:beta", options).message()),
              HasSubstr("write NAME=VALUE"));
  EXPECT_THAT(std::string(apply_policy_spec("memdecay:", options).message()),
              HasSubstr("write NAME=VALUE"));
}

}  // namespace
}  // namespace memdecay
