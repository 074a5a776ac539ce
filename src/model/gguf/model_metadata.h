// ModelMetadata: range-checked look-ups of one architecture's metadata keys, for ModelConfig.
// Views a GgufFile, which must outlive it. Any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "model/gguf/gguf_file.h"

namespace memdecay {

class ModelMetadata {
 public:
  ModelMetadata(const GgufFile& file, std::string_view architecture)
      : file_(file), prefix_(std::string(architecture) + ".") {}

  const GgufFile& file() const { return file_; }
  /// "llama." + suffix
  std::string key(std::string_view suffix) const { return prefix_ + std::string(suffix); }

  /// The integer, which must be there and in [least, most].
  Result<int> count(std::string_view suffix, int least, int most) const;
  Result<int> count_or(std::string_view suffix, int least, int most, int otherwise) const;
  /// The same, where the file may also give an array with one value per layer: all must be equal.
  Result<std::optional<int>> count_of_layers(std::string_view suffix, int layers, int least,
                                             int most) const;
  /// A finite number in [least, most], stored as a float.
  Result<std::optional<double>> number(std::string_view suffix, double least, double most) const;
  /// kUnsupported when the file has a key that would change the computation and this build does not
  /// know how.
  Status refuse_unknown_computation() const;

 private:
  Result<int> in_range(std::string_view suffix, std::int64_t value, int least, int most) const;

  const GgufFile& file_;
  std::string prefix_;
};

}  // namespace memdecay
