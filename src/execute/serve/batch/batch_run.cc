#include "execute/serve/batch/batch_run.h"

#include <algorithm>
#include <unordered_map>

namespace systole {

BatchRun::BatchRun(const BatchJob& job, const BatchInput& input, BatchWork& work, BatchJournal& journal,
                   const BatchShard& shard)
    : job_(job), input_(input), work_(work), journal_(journal), shard_(shard) {}

Result<bool> BatchRun::prepare(const Told& told, bool ids_are_known) {
  std::unordered_map<std::string, std::size_t> named;
  std::vector<BatchRecord> refused;
  for (std::size_t row = 0; row < input_.rows(); ++row) {
    if (told && row % 64 == 0 && !told(static_cast<std::int64_t>(row))) return false;
    if (ids_are_known && !is_left(row)) continue;
    BatchRow about{row, input_.where(row).line};
    Result<RowSize> measured = [&]() -> Result<RowSize> {
      const Node fields = TRY(input_.fields(row));
      about.custom_id = custom_id_of(fields);
      return !is_left(row) ? RowSize() : work_.measure(TRY(request_of(job_, fields)));
    }();
    if (about.custom_id) {
      const auto [first, is_new] = named.emplace(*about.custom_id, row);
      if (!is_new) {
        return key_error(ErrorKind::invalid, "custom_id", "'{}' is also that of line {}", *about.custom_id,
                         input_.where(first->second).line)
            .at(input_.where(row))
            .hinted("each row needs another, or none");
      }
    }
    if (!is_left(row)) continue;
    if (measured.ok()) {
      order_.push_back({row, std::move(measured).value()});
    } else {
      refused.push_back(refused_row(about, measured.error()));
    }
  }
  std::ranges::stable_sort(order_, std::ranges::greater(),
                           [](const Measured& measured) { return measured.size.prompt_tokens; });
  TRY(keep(std::move(refused)));
  return true;
}

BatchPrice BatchRun::price() const {
  BatchPrice price{.rows = static_cast<std::int64_t>(order_.size())};
  std::vector<SequenceSize> sequences;
  for (const Measured& measured : order_) {
    price.prompt_tokens += measured.size.prompt_tokens;
    for (const SequenceSize& sequence : measured.size.sequences) {
      price.new_tokens += sequence.answer;
      sequences.push_back(sequence);
    }
  }
  price.calls = work_.calls_of(sequences);
  return price;
}

Status BatchRun::keep(std::vector<BatchRecord> records) {
  for (BatchRecord& record : records) {
    record.row = shard_.place(record.row);
    TRY(journal_.append(record));
  }
  return {};
}

// REQUIRES: prepare() has measured it.
Status BatchRun::begin(std::size_t row) {
  const Node fields = TRY(input_.fields(row));
  const BatchRow about{row, input_.where(row).line, custom_id_of(fields)};
  const Status begun = work_.begin(about, TRY(request_of(job_, fields)));
  return begun.ok() ? begun : keep({refused_row(about, begun.error())});
}

Result<bool> BatchRun::compute(const Told& told) {
  for (std::size_t next = 0;;) {
    for (; next < order_.size() && work_.has_room(); ++next) TRY(begin(order_[next].row));
    const Result<bool> stepped = work_.step();
    TRY(keep(work_.take_ended()));
    if (!stepped.ok()) TRY(journal_.sync());
    if (!TRY(stepped) && next == order_.size()) return true;
    if (told && !told(done())) {
      TRY(journal_.sync());
      return false;
    }
  }
}

}  // namespace systole
