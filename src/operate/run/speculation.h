#pragma once
// What --speculate asks for: drafts of the next tokens by what a sequence has already, or by a smaller model.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "execute/serve/model_drafts.h"
#include "operate/run/served_model.h"

namespace systole {

struct Speculation {
  std::int64_t drafts = 0;  // EngineOptions::drafts; 0: none
  std::string model = {};   // that makes them, as find_model takes it; empty: NgramDrafts
};

// "ngram", "ngram:K", "model:PATH" or "model:PATH:K", K from 1 to 31; "": none. Of a PATH that ends with a number behind
// a colon, that is K. Errors: invalid; unsupported: a backend on which an answer's bits depend on what else is in a
// step, so that drafts could change it.
Result<Speculation> speculation_for(const std::string& asked, const std::string& backend);

// Checks that each token is the same text in both models. Errors: invalid, naming both.
Status check_same_tokens(const ServedModel& draft, const ServedModel& served);

// The model that drafts for `served`; nothing: none does. Errors: those of find_model and check_same_tokens.
Result<std::optional<ServedModel>> find_draft_model(const Speculation& speculation, const ServedModel& served);

// What makes the drafts for an engine, loaded; null: `draft` is nothing. `parameter`: as open_engine takes it. Errors:
// as open_engine; unsupported: the model does not continue its prompt.
Result<std::unique_ptr<ModelDrafts>> open_drafts(const std::optional<ServedModel>& draft, const Machine& machine,
                                                 const Engine& target, DType parameter);

}  // namespace systole
