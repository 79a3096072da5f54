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
  const Result<Node> node = parse_json(text, where.file);
  if (!node.ok() || node->find("n") == nullptr || node->find("previous") == nullptr)
    return wrong("this line is none of an audit");
  const Result<std::int64_t> n = node->find("n")->as_int(1);
  if (!n.ok()) return wrong("this line has no number");
  line.n = *n;
  line.previous = node->find("previous")->text();
  return line;
}

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
  const std::unique_ptr<FileLock> lock = TRY(lock_folder(folder_, Seconds(5.0), clock_));
  const std::unique_ptr<Store> store = TRY(open_private_store(folder_));
  std::string there;
  if (TRY(store->exists(kFile))) there = TRY(read_text(*store, kFile));
  const std::string file = folder_ + "/" + kFile;
  const std::size_t whole = there.rfind('\n') == there.npos ? 0 : there.rfind('\n') + 1;
  const std::size_t torn = there.size() - whole;
  there.resize(whole);
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
  text += text_of(++n, clock_.timestamp(), act, run, more, previous, hash);
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
  std::string_view rest = text;
  while (!rest.empty()) {
    const Where where{file, static_cast<int>(check.lines + 1), 0};
    const std::size_t newline = rest.find('\n');
    if (newline == rest.npos) return error(ErrorKind::corrupt, "the last line is torn").at(where);
    const Line line = TRY(line_of(rest.substr(0, newline), where));
    if (line.n != check.lines + 1 || line.previous != check.last)
      return error(ErrorKind::corrupt, "this line does not follow the one before it: lines were taken out or moved")
          .at(where);
    check.last = line.hash;
    hashes.insert(line.hash);
    ++check.lines;
    rest.remove_prefix(newline + 1);
  }
  for (const std::string& hash : known) {
    if (hashes.contains(hash)) continue;
    return error(ErrorKind::corrupt, "a record was told of in line {:.12}, which is not there: its end was cut off",
                 hash)
        .at({file, static_cast<int>(check.lines), 0});
  }
  return check;
}

}  // namespace systole
