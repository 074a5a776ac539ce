#include "engine/model.h"

#include <algorithm>
#include <array>

#include "engine/read_vocabulary.h"
#include "model/gguf/model_tensors.h"

namespace memdecay {
namespace {

// Control tokens that end a turn in the families whose files do not name them as eos or eot.
constexpr std::array<std::string_view, 6> kEndOfTurnPieces = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|endoftext|>", "<|end|>"};

std::string piece_text(const Vocabulary& vocabulary, TokenId token) {
  return token < 0 ? std::string() : vocabulary.pieces[static_cast<std::size_t>(token)];
}

std::vector<TokenId> find_end_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenId> tokens;
  if (vocabulary.eos >= 0) tokens.push_back(vocabulary.eos);
  if (vocabulary.eot >= 0) tokens.push_back(vocabulary.eot);
  for (std::size_t i = 0; i < vocabulary.types.size(); ++i) {
    if (vocabulary.types[i] != TokenType::kControl) continue;
    const bool ends = std::find(kEndOfTurnPieces.begin(), kEndOfTurnPieces.end(),
                                vocabulary.pieces[i]) != kEndOfTurnPieces.end();
    if (ends) tokens.push_back(static_cast<TokenId>(i));
  }
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const std::string& path, Precision precision,
                                           ThreadTeam& team) {
  MEMDECAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  std::unique_ptr<Model> model(new Model());
  MEMDECAY_RETURN_IF_ERROR(model->read_header(file));
  MEMDECAY_ASSIGN_OR_RETURN(const ModelTensors tensors, ModelTensors::find(file, model->config_));
  MEMDECAY_ASSIGN_OR_RETURN(model->weights_,
                            load_weights(file, model->config_, tensors, precision, team));
  model->precision_ = precision;
  return model;
}

Result<std::unique_ptr<Model>> Model::load_vocabulary_only(const std::string& path) {
  MEMDECAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::open(path));
  std::unique_ptr<Model> model(new Model());
  MEMDECAY_RETURN_IF_ERROR(model->read_header(file));
  return model;
}

Status Model::read_header(const GgufFile& file) {
  path_ = file.name();
  file_bytes_ = file.bytes().size();
  for (std::size_t i = 0; i < file.tensor_count(); ++i) {
    tensor_bytes_ += file.tensor(i).bytes.size();
    parameters_ += file.tensor(i).values();
  }
  MEMDECAY_ASSIGN_OR_RETURN(config_, ModelConfig::read(file));
  MEMDECAY_ASSIGN_OR_RETURN(const Vocabulary vocabulary, read_vocabulary(file));
  if (static_cast<int>(vocabulary.pieces.size()) != config_.vocab_size) {
    return make_status(StatusCode::kCorrupt,
                       "{}: the vocabulary has {} pieces, but the embedding {} rows", path_,
                       vocabulary.pieces.size(), config_.vocab_size);
  }
  bos_text_ = piece_text(vocabulary, vocabulary.bos);
  eos_text_ = piece_text(vocabulary, vocabulary.eos);
  end_tokens_ = find_end_tokens(vocabulary);
  if (vocabulary.add_bos && vocabulary.bos >= 0) leading_token_ = vocabulary.bos;
  MEMDECAY_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::create(vocabulary));
  MEMDECAY_ASSIGN_OR_RETURN(const auto source,
                            file.optional<std::string_view>("tokenizer.chat_template"));
  if (!source) return Status();
  Result<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::parse(std::string(*source));
  if (parsed.ok()) {
    chat_template_ = std::move(parsed).value();
  } else {
    chat_template_status_ = parsed.status().with_context(path_ + ": chat template");
  }
  return Status();
}

std::string Model::token_text(TokenId token) const {
  return std::string(tokenizer_->decode(token, /*control=*/true));
}

bool Model::is_end(TokenId token) const {
  return std::binary_search(end_tokens_.begin(), end_tokens_.end(), token);
}

}  // namespace memdecay
