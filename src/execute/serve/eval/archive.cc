#include "execute/serve/eval/archive.h"

#include <algorithm>
#include <optional>

#include "ground/base/number_from.h"
#include "ground/store/sha256.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kMost = 1'000'000'000'000;  // entries
constexpr const char* kHead = "head.json";
constexpr std::string_view kEnd = ".jsonl";

struct Head {
  ArchivedEntry removed = {}, last = {};
  bool there = false;
};

Node node_of(const ArchivedEntry& entry) { return Node::map({{"entry", entry.number}, {"sha256", entry.sha256}}); }

Result<ArchivedEntry> entry_at(const Node& head, std::string_view key) {
  const Node* const entry = TRY(head.get(key));
  const Node* const number = TRY(entry->get("entry"));
  const Node* const hash = TRY(entry->get("sha256"));
  ArchivedEntry made;
  made.number = TRY(number->as_int(0, kMost));
  made.sha256 = TRY(hash->as_string());
  return made;
}

Result<Head> parse_head(const std::string& text) {
  const Node node = TRY(parse_json(text, kHead));
  const Node* const version = TRY(node.get("archive"));
  TRY(version->as_int(kVersion, kVersion));
  Head head{.there = true};
  head.removed = TRY(entry_at(node, "removed"));
  head.last = TRY(entry_at(node, "last"));
  return head;
}

Result<Head> read_head(Store& archive) {
  const bool there = TRY(archive.exists(kHead));
  if (!there) return Head{};
  const std::string text = TRY(read_text(archive, kHead, kMiB));
  Result<Head> head = parse_head(text);
  if (head.ok()) return head;
  Error wrong = std::move(head).error();
  wrong.kind = ErrorKind::corrupt;
  wrong.message = "the head of the archive is damaged: " + wrong.message;
  return wrong;
}

Status write_head(Store& archive, const Head& head) {
  const Node node =
      Node::map({{"archive", kVersion}, {"removed", node_of(head.removed)}, {"last", node_of(head.last)}});
  const std::string text = to_json(node) + "\n";
  return write_whole(archive, kHead, text);
}

// The numbers of all entries, sorted.
Result<std::vector<std::int64_t>> numbers_in(Store& archive) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : TRY(archive.list(""))) {
    if (!name.ends_with(kEnd)) continue;
    const std::optional<std::int64_t> number = number_from(std::string_view(name).substr(0, name.size() - kEnd.size()));
    if (number && *number > 0 && *number <= kMost && archive_file(*number) == name) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

struct Entry {
  std::string sha256, previous;
  std::string fault;  // why this is no entry; empty: it is one
};

Result<std::string> previous_in(std::string_view first_line, std::int64_t number) {
  const Node about = TRY(parse_json(first_line, archive_file(number)));
  const Node* const said = TRY(about.get("entry"));
  TRY(said->as_int(number, number));
  const Node* const previous = TRY(about.get("previous"));
  return previous->as_string();
}

Result<Entry> read_entry(Store& archive, std::int64_t number) {
  const std::string text = TRY(read_text(archive, archive_file(number)));
  Entry entry{.sha256 = sha256_of(text)};
  Result<std::string> previous = previous_in(std::string_view(text).substr(0, text.find('\n')), number);
  if (previous.ok()) {
    entry.previous = std::move(previous).value();
  } else {
    entry.fault = "it is no such entry: " + previous.error().message;
  }
  return entry;
}

bool follows(const Entry& entry, std::int64_t number, const ArchivedEntry& last) {
  return number == last.number + 1 && entry.fault.empty() && entry.previous == last.sha256;
}

// With the entry that head.json lacks because its writer was killed.
Result<Head> head_of(Store& archive) {
  Head head = TRY(read_head(archive));
  const std::vector<std::int64_t> numbers = TRY(numbers_in(archive));
  if (numbers.empty() || numbers.back() <= head.last.number) return head;
  const std::int64_t newest = numbers.back();
  const Entry entry = TRY(read_entry(archive, newest));
  if (!follows(entry, newest, head.last)) {
    return error(ErrorKind::corrupt, "'{}' does not follow entry {}, the last of {}", archive_file(newest),
                 head.last.number, kHead)
        .hinted("archive into another folder, and keep this one as it is");
  }
  head.last = {newest, entry.sha256};
  return head;
}

}  // namespace

std::string archive_file(std::int64_t number) { return fmt::format("{:08}{}", number, kEnd); }

Result<ArchivedEntry> last_entry(Store& archive) {
  Head head = TRY(head_of(archive));
  return std::move(head.last);
}

Result<ArchivedEntry> append_entry(Store& archive, const Node& about, std::string_view lines) {
  Head head = TRY(head_of(archive));
  const std::int64_t number = head.last.number + 1;
  Node first = Node::map({{"archive", kVersion}, {"entry", number}, {"previous", head.last.sha256}});
  for (const Node::Entry& entry : about.entries()) first.set(entry.key, entry.value);
  std::string text = to_json(first) + "\n";
  text += lines;
  TRY(write_whole(archive, archive_file(number), text));
  head.last = {number, sha256_of(text)};
  TRY(write_head(archive, head));
  return std::move(head.last);
}

Result<std::int64_t> keep_newest(Store& archive, std::int64_t keep) {
  Head head = TRY(head_of(archive));
  const std::int64_t before = head.removed.number, going = head.last.number - keep;
  if (going > before) {
    const Entry oldest = TRY(read_entry(archive, going + 1));
    std::string expected = oldest.previous;
    const ArchivedEntry gone{going, expected};
    for (std::int64_t number = going; number >= before; --number) {
      std::string found = head.removed.sha256, previous;
      if (number > before) {
        Entry entry = TRY(read_entry(archive, number));
        found = std::move(entry.sha256);
        previous = std::move(entry.previous);
      }
      if (found != expected) {
        return error(ErrorKind::corrupt, "'{}' does not follow the entry before it, so nothing is removed",
                     archive_file(number + 1))
            .hinted("`systole eval --verify FOLDER` says what does not fit");
      }
      expected = std::move(previous);
    }
    head.removed = gone;
    TRY(write_head(archive, head));
  }
  bool changed = false;
  for (const std::int64_t number : TRY(numbers_in(archive))) {
    if (number > head.removed.number) break;
    TRY(archive.remove(archive_file(number)));
    changed = true;
  }
  if (changed) TRY(archive.sync_dir(""));
  return head.removed.number - before;
}

Result<ArchiveReport> verify_archive(Store& archive) {
  const Head head = TRY(read_head(archive));
  const std::vector<std::int64_t> numbers = TRY(numbers_in(archive));
  ArchiveReport report{.removed = head.removed.number, .last = head.last};
  const auto missing = [&](std::int64_t from, std::int64_t to) {
    report.wrong.push_back(
        {from, from == to ? "it is missing" : fmt::format("entries {} to {} are missing", from, to)});
  };
  std::int64_t lowest = head.last.number + 1;              // those from here are done
  std::optional<std::string> expected = head.last.sha256;  // of the entry below it; nothing: nobody knows
  for (auto at = numbers.rbegin(); at != numbers.rend() && *at > head.removed.number; ++at) {
    const std::int64_t number = *at;
    const Entry entry = TRY(read_entry(archive, number));
    ++report.entries;
    if (number > head.last.number) {
      if (follows(entry, number, head.last)) {
        report.last = {number, entry.sha256};
      } else {
        report.wrong.push_back({number, head.there ? fmt::format("the last of {} is {}", kHead, head.last.number)
                                                   : fmt::format("there is no {}", kHead)});
      }
      continue;
    }
    if (number < lowest - 1) {
      missing(number + 1, lowest - 1);
      expected.reset();
    }
    std::string why = entry.fault;
    if (why.empty() && expected && entry.sha256 != *expected) {
      why = fmt::format("its SHA-256 is {}, and {} has {}", entry.sha256,
                        number == head.last.number ? kHead : archive_file(number + 1), *expected);
    }
    lowest = number;
    expected = why.empty() ? std::optional(entry.previous) : std::nullopt;
    if (!why.empty()) report.wrong.push_back({number, std::move(why)});
  }
  if (lowest > head.removed.number + 1) {
    missing(head.removed.number + 1, lowest - 1);
  } else if (expected && *expected != head.removed.sha256) {
    report.wrong.push_back({lowest, fmt::format("it has '{}' for the entry before it, and {} has '{}'", *expected,
                                                kHead, head.removed.sha256)});
  }
  std::ranges::reverse(report.wrong);
  return report;
}

}  // namespace systole
