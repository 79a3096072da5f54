#include "execute/serve/batch/batch_journal.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ground/base/document.h"
#include "ground/base/hash.h"
#include "ground/base/number_from.h"
#include "ground/base/shell_quoted.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

constexpr std::int64_t kPiece = 1 << 20;  // bytes that are read or written at once
constexpr std::size_t kChecksum = 8;      // digits
constexpr std::int64_t kVersion = 1;

std::string checksum_of(std::string_view payload) {
  return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(payload))));
}

std::string line_of(std::string_view payload) { return fmt::format("{} {}\n", checksum_of(payload), payload); }

// What follows the checksum; nothing: it does not fit.
std::optional<std::string_view> payload_of(std::string_view line) {
  if (line.size() <= kChecksum || line[kChecksum] != ' ') return std::nullopt;
  const std::string_view payload = line.substr(kChecksum + 1);
  return checksum_of(payload) == line.substr(0, kChecksum) ? std::optional(payload) : std::nullopt;
}

// So many numbers, each with a space behind it, off the front. Nothing: it does not begin so.
template <std::size_t N>
std::optional<std::array<std::int64_t, N>> take_numbers(std::string_view& text) {
  std::array<std::int64_t, N> numbers{};
  for (std::int64_t& number : numbers) {
    const std::size_t end = text.find(' ');
    const auto read = number_from(text.substr(0, end));
    if (!read || *read < 0 || end == text.npos) return std::nullopt;
    number = *read;
    text.remove_prefix(end + 1);
  }
  return numbers;
}

}  // namespace

Result<bool> for_each_line(Store& store, const std::string& path, std::int64_t size,
                           const std::function<Status(std::string_view, std::int64_t)>& take) {
  std::string held;
  std::int64_t at = 0;  // of the file, behind `held`
  std::size_t seen = 0;
  while (at < size) {
    const std::size_t before = held.size();
    const std::int64_t bytes = std::min(kPiece, size - at);
    held.resize(before + static_cast<std::size_t>(bytes));
    TRY(store.read(path, at, std::as_writable_bytes(std::span(held).subspan(before))));
    at += bytes;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = held.find('\n', std::max(begin, seen))) != held.npos; begin = end + 1) {
      const std::int64_t offset = at - static_cast<std::int64_t>(held.size() - begin);
      TRY(take(std::string_view(held).substr(begin, end - begin), offset));
    }
    held.erase(0, begin);
    seen = held.size();
  }
  return !held.empty();
}

Result<std::unique_ptr<Store>> copy_for_reading(const BatchOutput& output) {
  std::unique_ptr<Store> copy = make_memory_store();
  const std::string folder = output.name + ".journal", rows = folder + "/rows";
  TRY(copy->make_dirs(folder));
  if (TRY(output.store.exists(output.name))) TRY(write_whole(*copy, output.name, ""));
  if (!TRY(output.store.exists(rows))) return copy;
  TRY(write_whole(*copy, rows, TRY(read_text(output.store, rows))));
  return copy;
}

BatchJournal::BatchJournal(const BatchOutput& output, const BatchFacts& facts)
    : store_(output.store),
      output_(output.name),
      folder_(output_ + ".journal"),
      path_(folder_ + "/rows"),
      shown_(output.path.empty() ? output.name : output.path),
      facts_(facts),
      places_(facts.rows) {}

std::string BatchJournal::header() const {
  return "job " + to_json(Node::map({{"systole_batch", kVersion},
                                     {"rows", facts_.rows},
                                     {"began", began_},
                                     {"model", facts_.model},
                                     {"input", facts_.input},
                                     {"options", facts_.options}}));
}

Result<std::unique_ptr<BatchJournal>> BatchJournal::open(const BatchOutput& output, const BatchFacts& facts,
                                                         std::int64_t now, std::int64_t sync_rows) {
  std::unique_ptr<BatchJournal> journal(new BatchJournal(output, facts));
  journal->sync_rows_ = sync_rows;
  Store& store = output.store;
  // In this order: an output of ours appears when its journal is there, perhaps at this moment, by another process.
  if (TRY(store.exists(output.name)) && !TRY(store.exists(journal->path_))) {
    return error(ErrorKind::exists, "'{}' is there, and not of a job that is known", journal->shown_)
        .hinted("move it away, or name another output");
  }
  TRY(make_dirs_synced(store, journal->folder_));
  journal->lock_ = TRY(store.try_lock(journal->folder_));
  if (!TRY(store.exists(journal->path_))) {
    TRY(journal->begin(now));
    return journal;
  }
  TRY(journal->read());
  const bool is_gone = journal->finished_ && !TRY(store.exists(output.name));
  const bool is_empty = is_gone || (!journal->finished_ && journal->totals_.rows + journal->dropped_ == 0);
  if (!journal->differs_.empty() && !is_empty) return journal->other_job();
  const bool is_whole = journal->totals_.rows == static_cast<std::int64_t>(facts.rows);
  if (!journal->finished_ && !is_whole && TRY(store.exists(output.name))) return journal->other_output();
  if (!journal->differs_.empty() || is_gone) TRY(journal->begin(now));
  return journal;
}

Status BatchJournal::begin(std::int64_t now) {
  began_ = now;
  finished_ = torn_ = false;
  totals_ = {};
  const std::string line = line_of(header());
  size_ = static_cast<std::int64_t>(line.size());
  // What the run before said of a table of its output (result_table.h) is of no file that this run makes.
  const std::string table = folder_ + "/table";
  if (TRY(store_.exists(table))) TRY(store_.remove(table));
  return write_whole(store_, path_, line);
}

Status BatchJournal::read_job(const std::string& payload) {
  const Node node = TRY(parse_json(payload, path_));
  const auto text = [&](const char* key) { return node.text_at(key); };
  if (text("systole_batch") != std::to_string(kVersion)) {
    return error(ErrorKind::unsupported, "the journal of '{}' has version {}, this program reads {}", shown_,
                 text("systole_batch"), kVersion)
        .coded(ErrorCode::newer_version)
        .hinted("use the program that began the job");
  }
  if (text("model") != facts_.model)
    differs_ = "its model was another";
  else if (text("input") != facts_.input)
    differs_ = "its input was another";
  else if (text("options") != facts_.options)
    differs_ = "its options were others";
  began_ = TRY(TRY(node.get("began"))->as_int());
  return {};
}

std::string BatchJournal::way_out() const {
  return fmt::format("name another output; or, if what is there may go: rm -rf {} {}", shell_word(shown_ + ".journal"),
                     shell_word(shown_));
}

Error BatchJournal::other_job() const {
  return error(ErrorKind::exists, "the journal of '{}' is of another job: {}", shown_, differs_).hinted(way_out());
}

Error BatchJournal::other_output() const {
  return error(ErrorKind::exists, "'{}' is there, and not of this job", shown_)
      .hinted("move it away, and type the same command again: finished rows are kept");
}

Status BatchJournal::read() {
  size_ = TRY(store_.size(path_)).count();
  bool is_known = false;
  torn_ = TRY(for_each_line(store_, path_, size_, [&](std::string_view line, std::int64_t offset) -> Status {
    const std::optional<std::string_view> payload = payload_of(line);
    if (payload && !is_known && payload->starts_with("job ")) {
      is_known = true;
      return read_job(std::string(payload->substr(4)));
    }
    const bool taken = payload && is_known &&
                       (read_row(*payload, offset + static_cast<std::int64_t>(kChecksum) + 1) || read_done(*payload));
    if (!taken && !line.empty()) ++dropped_;
    return {};
  }));
  if (torn_) ++dropped_;
  if (is_known) return {};
  // It is written whole: whatever this is, it is no journal.
  return error(ErrorKind::corrupt, "'{}.journal' is no journal of a batch", shown_).hinted(way_out());
}

// False: it is no record of a row. `offset`: of the payload in the file.
bool BatchJournal::read_row(std::string_view payload, std::int64_t offset) {
  std::string_view rest = payload;
  if (!rest.starts_with("row ")) return false;
  rest.remove_prefix(4);
  const auto numbers = take_numbers<4>(rest);
  if (!numbers || rest.empty()) return false;
  const auto& [row, prompt, answer, failed] = *numbers;
  if (static_cast<std::size_t>(row) >= places_.size()) return false;
  Place& place = places_[static_cast<std::size_t>(row)];
  if (place.bytes > 0) return true;
  place = {offset + static_cast<std::int64_t>(payload.size() - rest.size()), static_cast<std::int64_t>(rest.size())};
  totals_.rows += 1;
  totals_.failed += failed;
  totals_.prompt_tokens += prompt;
  totals_.answer_tokens += answer;
  return true;
}

bool BatchJournal::read_done(std::string_view payload) {
  if (!payload.starts_with("done ")) return false;
  std::string rest(payload.substr(5));
  rest += ' ';
  std::string_view words = rest;
  const auto numbers = take_numbers<4>(words);
  if (!numbers) return false;
  const auto& [rows, failed, prompt, answer] = *numbers;
  totals_ = {rows, failed, prompt, answer};
  finished_ = true;
  return true;
}

Status BatchJournal::open_to_append() {
  file_ = TRY(store_.append_to(path_));
  if (!torn_) return {};
  TRY(file_->append(std::as_bytes(std::span("\n", 1))));  // what was torn is a line of its own, and dropped
  ++size_;
  torn_ = false;
  return {};
}

Status BatchJournal::append(const BatchRecord& record) {
  CHECK(!has(record.row), "row {} is finished already", record.row);
  if (file_ == nullptr) TRY(open_to_append());
  const std::string payload = fmt::format("row {} {} {} {} {}", record.row, record.prompt_tokens, record.answer_tokens,
                                          record.failed ? 1 : 0, record.line);
  const std::string line = line_of(payload);
  TRY(file_->append(std::as_bytes(std::span(line))));
  read_row(payload, size_ + static_cast<std::int64_t>(kChecksum) + 1);
  size_ += static_cast<std::int64_t>(line.size());
  return ++unsynced_ >= sync_rows_ ? sync() : Status();
}

Status BatchJournal::sync() {
  unsynced_ = 0;
  return file_ == nullptr ? Status() : file_->sync();
}

// The output, a piece at a time.
Status BatchJournal::for_each_piece(const std::function<Status(std::string_view)>& take) const {
  std::string text;
  for (const Place& place : places_) {
    const std::size_t before = text.size();
    text.resize(before + static_cast<std::size_t>(place.bytes));
    TRY(store_.read(path_, place.offset, std::as_writable_bytes(std::span(text).subspan(before))));
    text += '\n';
    if (text.size() < static_cast<std::size_t>(kPiece)) continue;
    TRY(take(text));
    text.clear();
  }
  return take(text);
}

// Whether the output is there, of this job: a process was killed before its journal said so.
Result<bool> BatchJournal::is_written() const {
  if (!TRY(store_.exists(output_))) return false;
  const std::int64_t size = TRY(store_.size(output_)).count();
  std::int64_t at = 0;
  bool is_same = true;
  std::string there;
  TRY(for_each_piece([&](std::string_view piece) -> Status {
    at += static_cast<std::int64_t>(piece.size());
    is_same = is_same && at <= size;
    if (!is_same) return {};
    there.resize(piece.size());
    TRY(store_.read(output_, at - static_cast<std::int64_t>(piece.size()), std::as_writable_bytes(std::span(there))));
    is_same = there == piece;
    return {};
  }));
  return is_same && at == size;
}

Status BatchJournal::finish(const std::function<Status()>& make_more) {
  if (finished_) return {};
  CHECK(totals_.rows == static_cast<std::int64_t>(places_.size()), "{} of {} rows", totals_.rows, places_.size());
  if (file_ == nullptr) TRY(open_to_append());
  TRY(sync());  // also what a killed process left: the output must not be there without its rows
  TRY(remove_unfinished(store_, output_));
  if (TRY(is_written())) {
    TRY(store_.sync_dir(""));  // perhaps the process was killed amid this
  } else {
    TRY(write_whole(store_, output_, [&](WritableFile& file) -> Status {
      TRY(for_each_piece([&](std::string_view piece) { return file.append(std::as_bytes(std::span(piece))); }));
      if (TRY(store_.exists(output_))) return other_output();
      return {};
    }));
  }
  if (file_ != nullptr) TRY(file_->close());
  file_.reset();
  if (make_more) TRY(make_more());
  const std::string done =
      fmt::format("done {} {} {} {}", totals_.rows, totals_.failed, totals_.prompt_tokens, totals_.answer_tokens);
  TRY(write_whole(store_, path_, line_of(header()) + line_of(done)));
  finished_ = true;
  return {};
}

}  // namespace systole
