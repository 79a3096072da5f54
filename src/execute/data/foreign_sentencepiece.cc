// SentencePiece models as other people trained them (T5's spiece.model): these normalise the text, prepend a space,
// collapse several spaces, and encode unknown text as unk. So decode(encode(x)) may differ from x: such a tokenizer is
// for prompts and answers, and for datasets of pairs.

#include <sentencepiece_processor.h>

#include "execute/data/sentencepiece_library.h"
#include "execute/data/tokenizer_model.h"

namespace systole {
namespace {

class ForeignModel : public TokenizerModel {
 public:
  std::unique_ptr<ModelEncoder> encoder() const override;
  Bytes resident() const override { return kSentencePieceToken * static_cast<std::int64_t>(spellings.size()); }
  sentencepiece::SentencePieceProcessor processor;
};

class WholeEncoder : public ModelEncoder {
 public:
  explicit WholeEncoder(const ForeignModel& model) : model_(model) {}

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) override {
    std::vector<int> ids;
    const auto status = model_.processor.Encode(text, &ids);
    CHECK(status.ok(), "SentencePiece: {}", status.ToString());
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }

 private:
  const ForeignModel& model_;
};

std::unique_ptr<ModelEncoder> ForeignModel::encoder() const { return std::make_unique<WholeEncoder>(*this); }

// In a model with byte tokens, "<0x41>" is "A".
std::string spelled(const std::string& piece, bool byte) {
  return byte ? std::string(1, static_cast<char>(std::stoi(piece.substr(3, 2), nullptr, 16))) : spelled_piece(piece);
}

}  // namespace

Result<std::shared_ptr<TokenizerModel>> load_foreign_sentencepiece(std::string_view serialised) {
  TRY(load_sentencepiece_library());
  auto model = std::make_shared<ForeignModel>();
  const sentencepiece::SentencePieceProcessor& processor = model->processor;
  if (!model->processor.LoadFromSerializedProto(serialised).ok())
    return error(ErrorKind::corrupt, "this is no SentencePiece model").hinted("copy the file again");
  model->family = TokenizerFamily::sentencepiece;
  model->eos = processor.eos_id();
  if (model->eos < 0)
    return error(ErrorKind::unsupported, "this SentencePiece model has no token that ends a text (</s>)");
  model->bos = processor.bos_id() >= 0 ? processor.bos_id() : processor.pad_id() >= 0 ? processor.pad_id() : model->eos;
  model->keeps_text = false;
  for (int token = 0; token < processor.GetPieceSize(); ++token) {
    if (processor.IsControl(token)) model->specials.push_back({processor.IdToPiece(token), token});
    const bool mark = processor.IsControl(token) || processor.IsUnknown(token);
    model->spellings.push_back(mark ? std::string() : spelled(processor.IdToPiece(token), processor.IsByte(token)));
  }
  std::vector<int> tokens;
  model->begins_with_space = processor.Encode("a", &tokens).ok() && !tokens.empty() &&
                             model->spellings[static_cast<std::size_t>(tokens[0])].starts_with(' ');
  return std::shared_ptr<TokenizerModel>(std::move(model));
}

}  // namespace systole
