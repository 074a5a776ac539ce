// Replay: earlier answers come back as the tokens that were generated, not as a tokenizer cuts
// them.
//
// A client sends an assistant's turn back as text. Its tokens were generated one by one and need
// not be those that the tokenizer makes of the text, so a plain comparison of ids would throw the
// session's pages away from there on. Where session and prompt say the same bytes, the prompt takes
// the session's ids. Control tokens are never made from content: they match by id only.
// Pure, any thread. Cost: O(tokens).
#pragma once

#include <span>

#include "engine/prompt/prompt.h"

namespace memdecay {

/// Rewrites the prompt's head to the session's ids as far as their bytes agree, up to the last
/// place where both have a token border. The text stays; origins and ends follow the new tokens.
void replay_held_ids(const Model& model, std::span<const TokenId> held, Prompt& prompt);

}  // namespace memdecay
