#include "execute/train/source.h"

namespace systole {
namespace {

// What a cursor counts where rows have buckets: the steps of an epoch, in an order.
struct CountedSteps {
  std::int64_t number = 0;  // for people
  std::string order;        // RowReader::order_of
};

// Batches of packed rows: a row has all of these inputs, or none.
class TextBatchSource : public BatchSource {
 public:
  // `steps`: of an epoch, if a cursor counts them.
  TextBatchSource(RowReader reader, std::optional<CountedSteps> steps)
      : reader_(std::move(reader)), steps_(std::move(steps)) {
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
    if (steps_) {
      cursor.set("steps", steps_->number);
      cursor.set("order", steps_->order);
    }
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
  std::optional<CountedSteps> steps_;
  std::int64_t batch_rows_ = 1;  // of the batch
  StepBatch batch_;
};

// With buckets a cursor counts steps, which other rows make up once the batch or the buckets are others, even if an
// epoch has as many. At an epoch's begin nothing has been counted.
Status same_steps(const Node& start, const RowCursor& cursor, const std::optional<CountedSteps>& steps) {
  if (start.is_null() || cursor.row == 0) return {};
  std::optional<std::int64_t> before;
  if (const Node* counted = start.find("steps")) before = TRY(counted->as_int(1));
  const Node* order = start.find("order");  // of older states only the number is known
  const bool same =
      !steps ? !before : before && (order ? start.text_at("order") == steps->order : *before == steps->number);
  if (same) return {};
  const auto named = [](std::optional<std::int64_t> n) { return n ? fmt::format("{} steps", *n) : "rows"; };
  const std::optional<std::int64_t> now = steps ? std::optional(steps->number) : std::nullopt;
  return error(ErrorKind::invalid, "the state is in the middle of an epoch of {}, and now an epoch is of {}{}",
               named(before), named(now), before == now ? " of other rows" : "")
      .hinted(
          "train.batch, data.buckets, data.drop_remainder and data.seed as they were; or begin a new run from its "
          "weights");
}

}  // namespace

Result<std::unique_ptr<BatchSource>> open_text_source(std::shared_ptr<const PackedTokens> tokens,
                                                      RowReaderOptions options, const Node& start) {
  RowCursor cursor;
  if (!start.is_null()) {
    cursor.epoch = TRY(TRY(start.get("epoch"))->as_int(0));
    cursor.row = TRY(TRY(start.get("row"))->as_int(0));
  }
  std::optional<CountedSteps> steps;
  if (std::optional<std::string> order = RowReader::order_of(tokens->packing, options))
    steps = CountedSteps{RowReader::positions(tokens->packing, options), *std::move(order)};
  TRY(same_steps(start, cursor, steps));
  RowReader reader = TRY(RowReader::open(std::move(tokens), std::move(options), cursor));
  return std::unique_ptr<BatchSource>(std::make_unique<TextBatchSource>(std::move(reader), steps));
}

}  // namespace systole
