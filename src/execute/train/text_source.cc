#include "execute/train/source.h"

namespace systole {
namespace {

// Batches of packed rows: a row has all of these inputs, or none.
class TextBatchSource : public BatchSource {
 public:
  explicit TextBatchSource(RowReader reader) : reader_(std::move(reader)) { batch_.inputs.reserve(8); }

  Result<const StepBatch*> next() override {
    const Batch* batch = TRY(reader_.next());
    if (batch == nullptr) return nullptr;
    batch_.inputs.clear();
    batch_rows_ = batch->batch_rows;
    batch_.length = batch->length;
    input("tokens", batch->tokens);
    input("labels", batch->labels);
    input("segments", batch->segments);
    input("positions", batch->positions);
    input("types", batch->types);
    input("target_tokens", batch->target_tokens);
    input("target_segments", batch->target_segments);
    batch_.rows = batch->rows;
    batch_.label_count = batch->label_count;
    batch_.bytes = batch->bytes;
    return &batch_;
  }

  Node cursor() const override {
    const RowCursor at = reader_.cursor();
    return Node::map({{"epoch", at.epoch}, {"row", at.row}});
  }

  std::vector<std::pair<std::string, Seconds>> waits() const override {
    const RowStages waits = reader_.waits();
    return {{"held up", waits.held}, {"read", waits.read}, {"pack", waits.pack}};
  }

 private:
  void input(std::string_view name, std::span<const std::int32_t> values) {
    if (values.empty()) return;
    batch_.inputs.push_back(
        {name, std::as_bytes(values), static_cast<std::int64_t>(values.size_bytes()) / batch_rows_});
  }

  RowReader reader_;
  std::int64_t batch_rows_ = 0;  // of the batch
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
  RowReader reader = TRY(RowReader::open(std::move(tokens), std::move(options), cursor));
  return std::unique_ptr<BatchSource>(std::make_unique<TextBatchSource>(std::move(reader)));
}

}  // namespace systole
