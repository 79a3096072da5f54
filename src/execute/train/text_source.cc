#include "execute/train/source.h"

namespace systole {
namespace {

// Batches of packed rows: a row has all of these inputs, or none.
class TextBatchSource : public BatchSource {
 public:
  // `steps`: of an epoch, if a cursor counts them.
  TextBatchSource(RowReader reader, std::optional<std::int64_t> steps) : reader_(std::move(reader)), steps_(steps) {
    batch_.inputs.reserve(8);
  }

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
    Node cursor = Node::map({{"epoch", at.epoch}, {"row", at.row}});
    if (steps_) cursor.set("steps", *steps_);
    return cursor;
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
  std::optional<std::int64_t> steps_;
  std::int64_t batch_rows_ = 1;  // of the batch
  StepBatch batch_;
};

// With buckets a cursor counts steps, which other rows make up once the batch or the buckets are others. At an epoch's
// begin nothing has been counted.
Status same_steps(const Node& start, const RowCursor& cursor, std::optional<std::int64_t> steps) {
  if (start.is_null() || cursor.row == 0) return {};
  const Node* counted = start.find("steps");
  std::optional<std::int64_t> before;
  if (counted != nullptr) before = TRY(counted->as_int(1));
  if (before == steps) return {};
  const auto named = [](std::optional<std::int64_t> n) { return n ? fmt::format("{} steps", *n) : "rows"; };
  return error(ErrorKind::invalid, "the state is in the middle of an epoch of {}, and now an epoch is of {}",
               named(before), named(steps))
      .hinted("train.batch, data.buckets and data.drop_remainder as they were; or begin a new run from its weights");
}

}  // namespace

Result<std::unique_ptr<BatchSource>> open_text_source(std::shared_ptr<const PackedTokens> tokens,
                                                      RowReaderOptions options, const Node& start) {
  RowCursor cursor;
  if (!start.is_null()) {
    cursor.epoch = TRY(TRY(start.get("epoch"))->as_int(0));
    cursor.row = TRY(TRY(start.get("row"))->as_int(0));
  }
  std::optional<std::int64_t> steps;
  if (tokens->packing.policy == PackingPolicy::bucketed && options.pass == RowPass::endless)
    steps = RowReader::positions(tokens->packing, options);
  TRY(same_steps(start, cursor, steps));
  RowReader reader = TRY(RowReader::open(std::move(tokens), std::move(options), cursor));
  return std::unique_ptr<BatchSource>(std::make_unique<TextBatchSource>(std::move(reader), steps));
}

}  // namespace systole
