#include "execute/data/formats/record.h"

#include <algorithm>
#include <numeric>

#include "execute/data/formats/bad_records.h"
#include "ground/base/base64.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

std::string place_text(const RecordPlace& place) {
  std::string text;
  if (place.record >= 0) text += fmt::format("record {}", with_commas(place.record));
  if (place.byte >= 0) text += fmt::format("{}byte {}", text.empty() ? "" : ", ", with_commas(place.byte));
  return text.empty() ? text : text + ": ";
}

// Of the record alone: the file can still be read.
bool is_of_the_record(const Error& error) {
  return error.kind == ErrorKind::corrupt || error.kind == ErrorKind::invalid;
}

// Counts a bad record. Errors: what to stop with.
Status count_bad(Error error, const BadRecordRule& rule, BadRecordTally& tally) {
  if (rule.on_bad_record == OnBadRecord::error || !is_of_the_record(error)) return error;
  if (tally.skipped == 0) tally.first = error.message;
  if (tally.skipped++ < rule.at_most) return Done{};
  return systole::error(ErrorKind::invalid, "more than {} bad records; the first: {}; this one: {}",
                        with_commas(rule.at_most), tally.first, error.message)
      .at(std::move(error.where))
      .hinted("look at the files: so many are no accident; a higher cap is `bad_records:`");
}

}  // namespace

Status RecordReader::read(std::int64_t, DataRecord&) {
  return error(ErrorKind::unsupported, "this format has no index, so its records are read in order only");
}

Status RecordReader::read_group(std::span<const std::int64_t> indices, const Each& each) {
  std::vector<std::size_t> order(indices.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return indices[i]; });
  DataRecord record;
  for (const std::size_t i : order) {
    TRY(read(indices[i], record));
    TRY(each(i, record));
  }
  return Done{};
}

Result<std::string_view> RecordReader::field(const DataRecord& record, std::string_view name) {
  if (name == kWholeRecord) return record.bytes;
  return error(ErrorKind::invalid, "the records have no fields, and '{}' is asked for", name);
}

Result<Node> RecordReader::value(const DataRecord& record, std::string_view name) {
  return bytes_node(TRY(field(record, name)));
}

Node bytes_node(std::string_view bytes) {
  if (!find_invalid_utf8(bytes)) return Node(std::string(bytes));
  return Node::map({{"base64", to_base64(bytes)}});
}

Error record_error(ErrorKind kind, const RecordPlace& place, std::string_view what, std::string hint) {
  return error(kind, "{}{}", place_text(place), what).at({place.file}).hinted(std::move(hint));
}

Error at_record(Error error, const RecordPlace& place) {
  error.message = place_text(place) + error.message;
  return std::move(error).at({place.file});
}

Result<bool> next_good(RecordReader& reader, DataRecord& record, const BadRecordRule& rule, BadRecordTally& tally,
                       const std::function<Status(const DataRecord&)>& use) {
  while (true) {
    Result<bool> more = reader.next(record);
    if (!more.ok()) {
      if (!reader.goes_on()) return std::move(more).error();
      TRY(count_bad(std::move(more).error(), rule, tally));
      continue;
    }
    if (!*more || !use) return *more;
    Status used = use(record);
    if (used.ok()) return true;
    TRY(count_bad(std::move(used).error(), rule, tally));
  }
}

}  // namespace systole
