#include "ground/store/gcs_read.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "ground/base/crc32c.h"
#include "ground/base/hash.h"
#include "ground/base/parallel.h"
#include "ground/net/content_range.h"

namespace systole {
namespace {

constexpr std::size_t kBegin = 64 << 10;  // of a whole object, read before its size is known
constexpr int kMostRestarts = 3;          // of a read whose object was replaced meanwhile

std::optional<ContentRange> range_of(const HttpReply& reply) {
  const std::string* range = reply.header("content-range");
  return range != nullptr ? read_content_range(*range) : std::nullopt;
}

// What one range tells: whether its version is gone, how much was filled, and of the whole object.
struct Told {
  bool gone = false;
  std::size_t filled = 0;
  GcsSeen seen = {};
};

// One range of an object. It owns what it uses, for a hedged read may outlive its caller.
class Range {
 public:
  Range(GcsApi& api, std::string path, std::int64_t offset, std::string generation)
      : api_(api), path_(std::move(path)), offset_(offset), generation_(std::move(generation)) {}

  // Fills the sink, or less where the object ends. Without a generation: of the newest. The size of what is seen is 0 if
  // nothing lies at the offset and the server does not say.
  Result<Told> read(ReadSink& sink) {
    const auto size = static_cast<std::int64_t>(sink.size());
    GcsAsk ask{.url = api_.object_url(api_.name_of(path_),
                                      generation_.empty() ? "alt=media" : "alt=media&generation=" + generation_),
               .headers = {{"Accept-Encoding", "gzip"}}};  // the bytes as they are stored, not decompressed
    ask.begin = [&](HttpRequest& request) -> Status {
      if (sink.is_closed()) return overtaken();
      if (generation_.empty()) filled_ = 0;  // what was read may be of another version
      from_ = offset_ + static_cast<std::int64_t>(filled_);
      request.headers.emplace_back("Range", fmt::format("bytes={}-{}", from_, offset_ + size - 1));
      request.bulk = true;
      request.take = [&](std::string_view piece) {
        const bool open = sink.put(filled_, piece);
        const std::size_t room = sink.size() - filled_;
        filled_ += std::min(room, piece.size());
        return open && piece.size() <= room;  // what follows was not asked for
      };
      request.cancelled = [&] { return sink.is_closed(); };
      return {};
    };
    const HttpReply reply = std::move(TRY(api_.send(ask)).reply);
    if (sink.is_closed()) return overtaken();
    if (reply.status == 404 && !generation_.empty()) return Told{.gone = true};
    const ContentRange range = range_of(reply).value_or(ContentRange());
    if (reply.status == 416) return Told{.seen = {generation_, Bytes(range.total.value_or(0)), {}}};
    if (reply.status != 200 && reply.status != 206) return api_.refusal(reply, path_, "read");
    if (reply.status == 200 ? from_ > 0 || reply.ended : range.begin != from_)
      return no_storage("it ignores the range that is asked for");
    const std::string* seen = reply.header("x-goog-generation");
    if (seen == nullptr) return no_storage("its answer has no x-goog-generation");
    const auto all = reply.status == 206 ? range.total : std::optional(static_cast<std::int64_t>(filled_));
    if (!all) return no_storage("its answer does not say how large the object is");
    return Told{.filled = filled_, .seen = {*seen, Bytes(*all), crc32c_in(reply)}};
  }

 private:
  static Error overtaken() { return error(ErrorKind::interrupted, "another read was faster"); }
  Error no_storage(std::string_view why) const {
    return error(ErrorKind::io, "'{}': what answers is not Cloud Storage: {}", api_.shown(path_), why)
        .hinted("check the endpoint: STORAGE_EMULATOR_HOST, CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
  }

  GcsApi& api_;
  const std::string path_;
  const std::int64_t offset_;
  const std::string generation_;
  std::int64_t from_ = 0;  // where the last try began
  std::size_t filled_ = 0;
};

// A range into `into`, hedged.
Result<Told> read_part(GcsApi& api, std::string_view path, std::int64_t offset, std::span<std::byte> into,
                       const std::string& generation) {
  struct Answer {
    std::mutex mutex;
    Told told[2];  // of the first read and the second
  };
  const auto answer = std::make_shared<Answer>();
  const auto read = [&api, answer, name = std::string(path), offset, generation](ReadSink& sink) -> Status {
    const Told told = TRY(Range(api, name, offset, generation).read(sink));
    const std::lock_guard lock(answer->mutex);
    answer->told[sink.which()] = told;
    return {};
  };
  const int which = TRY(api.reads().race(into, read));
  const std::lock_guard lock(answer->mutex);
  return answer->told[which];
}

Error shorter(const GcsApi& api, std::string_view path, std::int64_t offset, std::size_t wanted, Bytes size) {
  return error(ErrorKind::corrupt, "'{}' ends at byte {}, {} bytes too early", api.shown(path), size.count(),
               offset + static_cast<std::int64_t>(wanted) - std::max(offset, size.count()));
}

// The rest of a read whose first part was `seen`, several parts at a time. False: that version is gone.
Result<bool> read_rest(GcsApi& api, std::string_view path, std::int64_t offset, std::span<std::byte> into,
                       std::size_t first, const GcsSeen& seen, std::uint32_t& sum) {
  const auto part = static_cast<std::size_t>(api.part());
  const std::size_t parts = (into.size() - first + part - 1) / part;
  std::vector<std::uint32_t> sums(parts);
  std::atomic<bool> gone = false;
  const auto piece = [&](std::size_t i) {
    return into.subspan(first + i * part, std::min(part, into.size() - first - i * part));
  };
  TRY(for_each_in_parallel(parts, std::min<int>(api.parallel(), static_cast<int>(parts)), [&](std::size_t i) -> Status {
    if (gone) return {};
    const std::int64_t from = offset + static_cast<std::int64_t>(first + i * part);
    const Told told = TRY(read_part(api, path, from, piece(i), seen.generation));
    gone = gone || told.gone;
    if (told.gone) return {};
    if (told.filled < piece(i).size()) return shorter(api, path, from, piece(i).size(), told.seen.size);
    sums[i] = crc32c(piece(i));
    return {};
  }));
  for (std::size_t i = 0; i < parts; ++i) sum = crc32c_joined(sum, sums[i], piece(i).size());
  return !gone;
}

Error other_bytes(const GcsApi& api, std::string_view path, std::uint32_t sum, std::uint32_t stored) {
  return error(ErrorKind::corrupt, "'{}': the bytes that came have the CRC32C {:08x}, those of the object {:08x}",
               api.shown(path), sum, stored);
}

Error keeps_changing(const GcsApi& api, std::string_view path) {
  return error(ErrorKind::io, "'{}' is replaced again and again while it is read", api.shown(path));
}

}  // namespace

Status read_gcs_range(GcsApi& api, std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  if (into.empty()) {
    TRY(api.describe(path));
    return {};
  }
  const std::size_t first = std::min(into.size(), static_cast<std::size_t>(api.part()));
  for (int n = 0; n < kMostRestarts; ++n) {
    const Told told = TRY(read_part(api, path, offset, into.first(first), ""));
    const GcsSeen& seen = told.seen;
    const bool has_all = seen.size >= Bytes(offset) + Bytes(into.size());
    if (told.filled < first || !has_all) {
      const Bytes size = seen.size == Bytes() ? TRY(api.describe(path)).size : seen.size;
      return shorter(api, path, offset, into.size(), size);
    }
    std::uint32_t sum = crc32c(into.first(first));
    if (!TRY(read_rest(api, path, offset, into, first, seen, sum))) continue;
    const bool is_whole = offset == 0 && seen.size == Bytes(into.size());
    if (is_whole && seen.crc32c && *seen.crc32c != sum) return other_bytes(api, path, sum, *seen.crc32c);
    return {};
  }
  return keeps_changing(api, path);
}

Status read_gcs_version(GcsApi& api, std::string_view path, const std::string& generation, std::int64_t offset,
                        std::span<std::byte> into) {
  std::uint32_t sum = 0;
  if (TRY(read_rest(api, path, offset, into, 0, {.generation = generation}, sum))) return {};
  return error(ErrorKind::busy, "'{}' was replaced or removed while it was read", api.shown(path));
}

Result<Versioned> read_gcs_whole(GcsApi& api, std::string_view path, Bytes limit) {
  for (int n = 0; n < kMostRestarts; ++n) {
    // A small object comes with one request, so that one which is replaced all the time can be read.
    Versioned whole{std::string(kBegin, '\0'), {}};
    Told told = TRY(read_part(api, path, 0, std::as_writable_bytes(std::span(whole.bytes)), ""));
    if (told.filled == 0) {  // it is empty, and nothing tells its version
      const GcsObject object = TRY(api.describe(path));
      if (object.size > Bytes()) continue;
      told.seen = {object.generation, object.size, object.crc32c};
    }
    const GcsSeen& seen = told.seen;
    if (seen.size > limit) {
      return error(ErrorKind::does_not_fit, "'{}' has {} bytes and the limit for such an object is {}", api.shown(path),
                   with_commas(seen.size.count()), with_commas(limit.count()));
    }
    const auto size = static_cast<std::size_t>(seen.size.count()), begin = std::min(size, kBegin);
    if (told.filled < begin) return shorter(api, path, 0, begin, Bytes(static_cast<std::int64_t>(told.filled)));
    whole.generation = {seen.generation};
    whole.bytes.resize(size);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(whole.bytes));
    std::uint32_t sum = crc32c(bytes.first(begin));
    if (begin < size && !TRY(read_rest(api, path, 0, bytes, begin, seen, sum))) continue;
    if (seen.crc32c && *seen.crc32c != sum) return other_bytes(api, path, sum, *seen.crc32c);
    return whole;
  }
  return keeps_changing(api, path);
}

}  // namespace systole
