#include "operate/cluster/audit.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "ground/store/lock.h"
#include "ground/store/private_store.h"
#include "ground/store/sha256.h"
#include "ground/store/store.h"
#include "operate/cluster/record.h"

namespace systole {
namespace {

constexpr const char* kFile = "audit.jsonl";
constexpr std::string_view kHash = ",\"hash\":\"";

struct Line {
  std::int64_t n = 0;
  std::string previous, hash;
  Node node;
};

// `text` is one line without its newline.
Result<Line> line_of(std::string_view text, const Where& where) {
  const auto wrong = [&](const char* why) { return error(ErrorKind::corrupt, "{}", why).at(where); };
  const std::size_t at = text.rfind(kHash);
  if (at == text.npos || text.size() != at + kHash.size() + 64 + 2 || !text.ends_with("\"}"))
    return wrong("this line has no hash");
  Line line;
  line.hash = text.substr(at + kHash.size(), 64);
  if (sha256_of(text.substr(0, at)) != line.hash) return wrong("this line was changed after it was written");
  Result<Node> node = parse_json(text, where.file);
  if (!node.ok() || node->find("n") == nullptr || node->find("previous") == nullptr)
    return wrong("this line is none of an audit");
  const Result<std::int64_t> n = node->find("n")->as_int(1);
  if (!n.ok()) return wrong("this line has no number");
  line.n = *n;
  line.previous = node->find("previous")->text();
  line.node = *std::move(node);
  return line;
}

// All lines of `text`. Errors: corrupt.
Result<std::vector<Line>> lines_of(std::string_view text, const std::string& file) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const Where where{file, static_cast<int>(lines.size() + 1), 0};
    const std::size_t newline = text.find('\n');
    if (newline == text.npos) return error(ErrorKind::corrupt, "the last line is torn").at(where);
    Line line = TRY(line_of(text.substr(0, newline), where));
    if (line.n != static_cast<std::int64_t>(lines.size() + 1) ||
        line.previous != (lines.empty() ? "" : lines.back().hash)) {
      return error(ErrorKind::corrupt, "this line does not follow the one before it: lines were taken out or moved")
          .at(where);
    }
    lines.push_back(std::move(line));
    text.remove_prefix(newline + 1);
  }
  return lines;
}

Result<std::vector<Node>> nodes_of(std::string_view text, const std::string& file) {
  std::vector<Node> nodes;
  for (Line& line : TRY(lines_of(text, file))) nodes.push_back(std::move(line.node));
  return nodes;
}

// Bytes of the whole lines.
std::size_t whole_of(std::string_view text) { return text.rfind('\n') == text.npos ? 0 : text.rfind('\n') + 1; }

std::string text_of(std::int64_t n, const std::string& at, const std::string& act, const std::string& run,
                    const Node& more, const std::string& previous, std::string& hash) {
  Node node = Node::map({{"n", n}, {"at", at}, {"by", who_and_where()}, {"act", act}, {"run", run}});
  for (const Node::Entry& entry : more.entries()) node.set(entry.key, entry.value);
  node.set("previous", previous);
  std::string text = to_json(node);
  text.pop_back();  // the brace
  hash = sha256_of(text);
  return text + std::string(kHash) + hash + "\"}\n";
}

}  // namespace

Result<std::string> Audit::append(const std::string& act, const std::string& run, const Node& more) {
  return append_to(act, run, [&](std::string_view) -> Result<Node> { return more; });
}

Result<std::string> Audit::append_after(const std::string& act, const std::string& run, const FromLines& more) {
  return append_to(act, run, [&](std::string_view there) -> Result<Node> {
    return more(TRY(nodes_of(there, folder_ + "/" + kFile)));
  });
}

Result<std::string> Audit::append_to(const std::string& act, const std::string& run,
                                     const std::function<Result<Node>(std::string_view there)>& more) {
  const std::unique_ptr<FileLock> lock = TRY(lock_folder(folder_, Seconds(5.0), clock_));
  const std::unique_ptr<Store> store = TRY(open_private_store(folder_));
  std::string there;
  if (TRY(store->exists(kFile))) there = TRY(read_text(*store, kFile));
  const std::string file = folder_ + "/" + kFile;
  const std::size_t whole = whole_of(there);
  const std::size_t torn = there.size() - whole;
  there.resize(whole);
  const Node of_line = TRY(more(there));
  std::int64_t n = 0;
  std::string previous, hash, text;
  if (!there.empty()) {
    const std::size_t before = there.size() > 1 ? there.rfind('\n', there.size() - 2) : there.npos;
    const std::size_t begin = before == there.npos ? 0 : before + 1;
    const auto line = static_cast<int>(std::ranges::count(there, '\n'));
    const Line last = TRY(line_of(std::string_view(there).substr(begin, there.size() - 1 - begin), {file, line, 0}));
    n = last.n;
    previous = last.hash;
  }
  if (torn > 0) {
    std::error_code failed;
    std::filesystem::resize_file(file, whole, failed);
    if (failed) return error(ErrorKind::io, "cannot cut '{}': {}", file, failed.message());
    text = text_of(++n, clock_.timestamp(), "repair", "", Node::map({{"torn_bytes", torn}}), previous, hash);
    previous = hash;
  }
  text += text_of(++n, clock_.timestamp(), act, run, of_line, previous, hash);
  const std::unique_ptr<WritableFile> out = TRY(store->append_to(kFile));
  TRY(out->append(std::as_bytes(std::span(text))));
  TRY(out->sync());
  TRY(out->close());
  if (there.empty()) TRY(store->sync_dir(""));
  return hash;
}

Result<AuditCheck> verify_audit(const std::string& folder, std::span<const std::string> known) {
  const std::string file = folder + "/" + kFile;
  const std::unique_ptr<Store> store = TRY(open_posix_store(folder));
  if (!TRY(store->exists(kFile))) return error(ErrorKind::not_found, "there is no '{}'", file);
  const std::string text = TRY(read_text(*store, kFile));
  AuditCheck check;
  std::set<std::string> hashes;
  for (const Line& line : TRY(lines_of(text, file))) {
    check.last = line.hash;
    hashes.insert(line.hash);
    ++check.lines;
  }
  for (const std::string& hash : known) {
    if (hashes.contains(hash)) continue;
    return error(ErrorKind::corrupt, "a record was told of in line {:.12}, which is not there: its end was cut off",
                 hash)
        .at({file, static_cast<int>(check.lines), 0});
  }
  return check;
}

Result<std::vector<Node>> read_audit(const std::string& folder) {
  const Result<std::unique_ptr<Store>> store = open_posix_store(folder);
  if (!store.ok() && store.error().kind == ErrorKind::not_found) return std::vector<Node>();
  if (!store.ok()) return store.error();
  if (!TRY((*store)->exists(kFile))) return std::vector<Node>();
  Result<std::string> text = read_text(**store, kFile);
  // Shorter than it was a moment ago: a writer has just cut a torn line off.
  if (!text.ok() && text.error().kind == ErrorKind::corrupt) text = read_text(**store, kFile);
  if (!text.ok()) return text.error();
  return nodes_of(std::string_view(*text).substr(0, whole_of(*text)), folder + "/" + kFile);
}

}  // namespace systole
