#pragma once
// What form a request wants its answer to have, and the grammar of it: `response_format` as OpenAI has it
// (https://platform.openai.com/docs/guides/structured-outputs, 2026-11), and vLLM's `structured_outputs` with
// `guided_json`, `guided_regex` and `guided_choice`, its older names.

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "execute/data/tokenizer.h"
#include "execute/serve/grammar/token_masks.h"
#include "execute/serve/request_fields.h"
#include "ground/base/document.h"

namespace systole {

struct AnswerForm {
  enum class Kind { text, object, schema, regex, choice };
  Kind kind = Kind::text;  // text: any
  std::string field = {};  // of the request, for errors
  Node schema = {};        // of `schema`
  std::string regex = {};
  std::vector<std::string> choices = {};
};

// Errors: invalid (a wrong type, a form that is no form, two forms), unsupported (another type); naming the field.
Result<AnswerForm> read_answer_form(Fields& fields);

// Errors: those of Grammar, naming the form's field; a grammar that is too large is invalid. REQUIRES: the form is not `text`.
Result<grammar::Grammar> grammar_of(const AnswerForm& form);

// The grammars that answers of one model conform to. Those of the last kMostKept forms are kept, with their masks. One
// thread at a time; what it hands out is for one thread, too, which may be another.
class AnswerGrammars {
 public:
  // `spelled`: special tokens that spell their names in an answer.
  AnswerGrammars(const Tokenizer& tokenizer, const std::vector<SpecialToken>& spelled);

  // `key`: the grammar's, by which it is found again. Errors: those of `make`.
  template <typename Make>
  Result<std::shared_ptr<grammar::TokenMasks>> masks(const std::string& key, Make make) {
    if (auto found = find(key)) return found;
    return keep(key, TRY(make()));
  }
  Result<std::shared_ptr<grammar::TokenMasks>> masks_of(const AnswerForm& form);

  static constexpr std::size_t kMostKept = 16;

 private:
  using Masks = std::shared_ptr<grammar::TokenMasks>;
  Masks find(const std::string& key);
  Masks keep(const std::string& key, grammar::Grammar grammar);

  std::shared_ptr<const grammar::TokenTrie> trie_;
  std::list<std::pair<std::string, Masks>> kept_;  // the newest first
};

}  // namespace systole
