// A random model whose tokens are the letters, for tests that tokenize real text. One thread.
#pragma once

#include <memory>

#include "engine/model_file_for_test.h"

namespace memdecay {

/// Small letters, capitals, digits and some marks; what is missing drops out of texts.
class LetterModel {
 public:
  LetterModel() : file_("llama", shape()), team_(1) {
    Result<std::unique_ptr<Model>> model = Model::load(file_.path(), Precision::kFast, team_);
    EXPECT_TRUE(model.ok()) << model.status().message();
    model_ = std::move(model).value();
  }
  const Model& model() const { return *model_; }

 private:
  static RandomModelShape shape() {
    RandomModelShape shape;
    for (const char c : std::string("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
      shape.pieces.push_back(std::string(1, c));
    for (const char c : std::string("0123456789.,:;!?{}[]\"'()<>|_-/"))
      shape.pieces.push_back(std::string(1, c));
    shape.pieces.push_back("Ġ");  // a space
    shape.pieces.push_back("Ċ");  // a new line
    shape.vocab = static_cast<std::uint32_t>(shape.pieces.size());
    return shape;
  }
  ModelFile file_;
  ThreadTeam team_;
  std::unique_ptr<Model> model_;
};

}  // namespace memdecay
