#include "execute/train/source.h"

namespace systole {
namespace {

class TextBatchSource : public BatchSource {
 public:
  TextBatchSource(RowReader reader, std::int64_t row_length) : reader_(std::move(reader)), row_bytes_(row_length * 4) {
    batch_.inputs.resize(4);
  }

  Result<const StepBatch*> next() override {
    const Batch* batch = TRY(reader_.next());
    if (batch == nullptr) return nullptr;
    const auto input = [&](std::size_t i, std::string_view name, std::span<const std::int32_t> values) {
      batch_.inputs[i] = {name, std::as_bytes(values), row_bytes_};
    };
    input(0, "tokens", batch->tokens);
    input(1, "labels", batch->labels);
    input(2, "segments", batch->segments);
    input(3, "positions", batch->positions);
    batch_.rows = batch->rows;
    batch_.label_count = batch->label_count;
    batch_.bytes = batch->bytes;
    return &batch_;
  }

  Node cursor() const override {
    const RowCursor at = reader_.cursor();
    return Node::map({{"epoch", at.epoch}, {"row", at.row}});
  }

 private:
  RowReader reader_;
  std::int64_t row_bytes_;
  StepBatch batch_;
};

}  // namespace

Result<std::unique_ptr<BatchSource>> open_text_source(std::shared_ptr<const PackedTokens> tokens,
                                                      RowReaderOptions options, const Node& start) {
  RowCursor cursor;
  if (!start.is_null()) {
    cursor.epoch = TRY(TRY(start.get("epoch"))->as_int(0));
    cursor.row = TRY(TRY(start.get("row"))->as_int(0));
  }
  const std::int64_t row_length = tokens->packing.row_length;
  RowReader reader = TRY(RowReader::open(std::move(tokens), std::move(options), cursor));
  return std::unique_ptr<BatchSource>(std::make_unique<TextBatchSource>(std::move(reader), row_length));
}

}  // namespace systole
