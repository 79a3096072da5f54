#include "execute/checkpoint/group.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "execute/checkpoint/sealed_text.h"
#include "ground/base/number_from.h"

namespace systole::checkpoint {

namespace {

constexpr TextKind kClaim{"systole-checkpoint-claim", 1, "claim"};
constexpr Bytes kLimit = 64 * kKiB;

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

struct Claim {
  std::string launch;
  std::int64_t generation = 0;
};

Result<std::optional<Claim>> read_claim(const Folder& folder) {
  auto text = get_text(*folder.store, folder.claim(), kLimit);
  if (!text && text.error().kind == ErrorKind::not_found) return std::optional<Claim>();
  if (!text) return std::move(text).error();
  const Node document = TRY(open_sealed_text(kClaim, *text, folder.claim()));
  Claim found;
  found.launch = TRY(TRY(document.get("launch"))->as_string());
  found.generation = TRY(TRY(document.get("generation"))->as_int(0));
  return std::optional<Claim>(std::move(found));
}

// Each generation leaves a mark under its own name, which an older one cannot overwrite. So a stale process that was
// stopped while claiming, and then replaces a newer claim, is detected at its next check.
std::string mark_name(const std::string& launch, std::int64_t generation) {
  return fmt::format("generation-{}-{:012}", launch, generation);
}

Result<std::int64_t> newest_generation(const Folder& folder, const std::string& launch) {
  const std::string prefix = fmt::format("{}/generation-{}-", folder.parts(), launch);
  std::int64_t newest = -1;
  const ObjectList marks = TRY(folder.store->list(prefix, ListDepth::one_level));
  for (const ObjectEntry& mark : marks.objects) {
    const std::string_view digits = std::string_view(mark.path).substr(prefix.size());
    if (digits.size() == 12) newest = std::max(newest, number_from(digits).value_or(-1));
  }
  return newest;
}

Error over(const Folder& folder, const SaveGroup& group, const Claim& now) {
  const std::string by = now.launch == group.launch
                             ? fmt::format("generation {} of this run has begun", now.generation)
                             : fmt::format("another launch ({}) saves into this folder now", now.launch);
  return error(ErrorKind::busy, "rank {} of generation {} may no longer save: {}", group.rank, group.generation, by)
      .at({folder.claim()})
      .hinted(now.launch == group.launch ? "this process is a leftover: it ends here"
                                         : "one of the two launches needs a folder of its own (--folder)");
}

}  // namespace

Status check(const SaveGroup& group) {
  if (group.world < 1 || group.rank < 0 || group.rank >= group.world) {
    return error(ErrorKind::invalid, "rank {} of {} writers", group.rank, group.world);
  }
  if (!group.launch.empty() && !is_name(group.launch)) {
    return error(ErrorKind::invalid, "'{}' is no name of a launch (letters, digits and '-')", group.launch);
  }
  if (!group.alone() && (group.launch.empty() || group.clock == nullptr)) {
    return error(ErrorKind::invalid, "{} writers need a launch's name and a clock", group.world);
  }
  return {};
}

std::string save_name(const SaveGroup& group, std::int64_t number) {
  return fmt::format("{}-{}-{}", group.launch, group.generation, number);
}

namespace {

Status write_claim(const Folder& folder, const SaveGroup& group) {
  const std::string mark = fmt::format("{}/{}", folder.parts(), mark_name(group.launch, group.generation));
  TRY(folder.store->put(mark, "", {}, Durability::when_settled));
  const std::string body = fmt::format("\"launch\":\"{}\",\"generation\":{}}}\n", group.launch, group.generation);
  TRY(folder.store->put(folder.claim(), seal_text(kClaim, body)));
  return {};
}

}  // namespace

Status claim(const Folder& folder, const SaveGroup& group) {
  TRY(check(group));
  const auto now = read_claim(folder);
  if (now.ok() && *now && (*now)->launch == group.launch && (*now)->generation > group.generation) {
    return over(folder, group, **now);
  }
  if (!now.ok() && now.error().kind != ErrorKind::corrupt) return now.error();  // a damaged claim belongs to nobody
  return write_claim(folder, group);
}

Status check_claim(const Folder& folder, const SaveGroup& group) {
  if (group.launch.empty()) return {};
  const auto now = TRY(read_claim(folder));
  if (now && (now->launch != group.launch || now->generation > group.generation)) return over(folder, group, *now);
  const std::int64_t newest = TRY(newest_generation(folder, group.launch));
  if (newest > group.generation) return over(folder, group, {group.launch, newest});
  const bool held = now && now->generation == group.generation;
  if (held || group.rank != 0) return {};
  return write_claim(folder, group);
}

}  // namespace systole::checkpoint
