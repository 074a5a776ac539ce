// Model: a model file, loaded: configuration, tokenizer, chat template and weights.
//
// Immutable after load(); any thread may read it. Weights cost about the file's size in RAM (4
// bytes a weight with Precision::kExact); load_vocabulary_only() skips them for tools that need no
// forward pass.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "model/chat_template/chat_template.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/model_config.h"
#include "model/tokenizer/tokenizer.h"
#include "model/transformer/model_weights.h"
#include "sys/thread_team.h"

namespace memdecay {

class Model {
 public:
  /// `path` is a file; names are resolved by resolve_model() (model_catalogue.h).
  static Result<std::unique_ptr<Model>> load(const std::string& path, Precision precision,
                                             ThreadTeam& team);
  /// Everything but the weights.
  static Result<std::unique_ptr<Model>> load_vocabulary_only(const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// Of all tensors: their bytes in the file, and how many numbers they stand for.
  std::uint64_t tensor_bytes() const { return tensor_bytes_; }
  std::int64_t parameters() const { return parameters_; }
  const ModelConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  /// Null when the file has no chat template (a base model) or one that this build cannot render;
  /// why is in chat_template_status().
  const ChatTemplate* chat_template() const { return chat_template_.get(); }
  const Status& chat_template_status() const { return chat_template_status_; }
  /// REQUIRES: loaded with weights.
  const ModelWeights& weights() const { return *weights_; }
  Precision precision() const { return precision_; }
  /// Tokens after which an answer is over: end of turn, end of text, and what the file lists
  /// besides.
  const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  bool is_end(TokenId token) const;
  /// The bytes that a token stands for; control tokens as they are written.
  std::string token_text(TokenId token) const;
  /// BOS, where the model wants every text to begin with it.
  std::optional<TokenId> leading_token() const { return leading_token_; }
  /// The begin and end tokens as a chat template writes them; empty where the model has none.
  const std::string& bos_text() const { return bos_text_; }
  const std::string& eos_text() const { return eos_text_; }

 private:
  Model() = default;
  Status read_header(const GgufFile& file);

  std::string path_;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t tensor_bytes_ = 0;
  std::int64_t parameters_ = 0;
  ModelConfig config_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_template_;
  Status chat_template_status_;
  std::unique_ptr<ModelWeights> weights_;
  Precision precision_ = Precision::kFast;
  std::vector<TokenId> end_tokens_;  ///< ascending
  std::string bos_text_, eos_text_;
  std::optional<TokenId> leading_token_;
};

}  // namespace memdecay
