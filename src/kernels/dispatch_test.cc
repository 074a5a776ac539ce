#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "kernels/kernel_table.h"

namespace memdecay {
namespace {

/// What the environment says, put back at the end.
class KernelsVariable {
 public:
  explicit KernelsVariable(const char* value) {
    if (const char* now = std::getenv(kName); now != nullptr) before_ = now;
    setenv(kName, value, 1);
  }
  ~KernelsVariable() {
    if (before_.empty()) {
      unsetenv(kName);
    } else {
      setenv(kName, before_.c_str(), 1);
    }
  }
  KernelsVariable(const KernelsVariable&) = delete;
  KernelsVariable& operator=(const KernelsVariable&) = delete;

 private:
  static constexpr const char* kName = "MEMDECAY_KERNELS";
  std::string before_;
};

TEST(Dispatch, TheScalarTableComesFirstAndEveryTableIsWhole) {
  ASSERT_FALSE(supported_kernels().empty());
  EXPECT_EQ(supported_kernels().front(), &scalar_kernels());
  for (const KernelTable* table : supported_kernels()) {
    EXPECT_TRUE(table->activation_bytes && table->quantize_activations && table->matmul);
    EXPECT_TRUE(table->attention_scratch_bytes && table->attention && table->merge_attention &&
                table->store_kv);
    EXPECT_TRUE(table->rms_norm && table->rope && table->swiglu && table->geglu &&
                table->max_value && table->read_streams && table->sum_exp && table->top_k);
  }
}

TEST(Dispatch, TheVariableNamesATable) {
  for (const KernelTable* table : supported_kernels()) {
    const KernelsVariable variable(table->name);
    EXPECT_EQ(&best_kernels(), table);
    EXPECT_TRUE(check_kernels_variable().ok());
  }
  const KernelsVariable variable("no such table");
  EXPECT_EQ(&best_kernels(), supported_kernels().back());
  const Status status = check_kernels_variable();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("can run scalar"), std::string::npos) << status.message();
  const KernelsVariable nothing("");
  EXPECT_TRUE(check_kernels_variable().ok()) << "as if it were not set";
}

}  // namespace
}  // namespace memdecay
