// The stages of preparing. probe_rows.cc: the reader of rows.
#include "execute/data/feed_probe.h"

#include <algorithm>
#include <map>

#include "execute/data/page_cache.h"
#include "execute/data/timed_store.h"

namespace systole {
namespace {

constexpr Bytes kEncoded = 2 * kMiB;  // of text that is kept to be tokenized

struct Kind {
  TextFormat format;
  Compression compression;
  auto operator<=>(const Kind&) const = default;
};

std::string name_of(const Kind& kind) {
  const std::string format = name_of(kind.format);
  if (records_of(kind.format) || kind.compression == Compression::none) return format;
  return format + ", " + name_of(kind.compression);
}

class SourceTimer {
 public:
  SourceTimer(const TextFiles& files, const TextOptions& text, Clock& clock, Seconds budget)
      : files_(files), text_(text), clock_(clock), budget_(budget), timed_(*files.store, clock) {}

  // Reads documents until the time is used.
  Status read(SourceProbe& probe) {
    probe.cold = true;
    const Seconds began = clock_.now();
    for (const std::string& path : files_.paths) {
      if (clock_.now() - began >= budget_) break;
      probe.cold = drop_cached_pages(files_.prefix + path) && probe.cold;
      TRY(read_file(path, began, probe));
    }
    probe.read = timed_.bytes();
    reading_ = timed_.reading();
    return {};
  }

  // Decompresses as many bytes of the files as were read, from the cache.
  Status decompress(Compression compression) {
    std::vector<std::byte> buffer(std::size_t{256} << 10);
    TimedStore timed(*files_.store, clock_);
    const Seconds began = clock_.now();
    for (const std::string& path : files_.paths) {
      if (timed.bytes() >= timed_.bytes()) break;
      const auto stream = TRY(open_bytes(timed, path, files_.prefix + path, compression));
      while (timed.bytes() < timed_.bytes() && TRY(stream->read(buffer)) > 0) continue;
    }
    decompressing_ = rest_of(clock_.now() - began, timed.reading() + timed.opening());
    return {};
  }

  // Tokens of the documents that were kept.
  void tokenize(const Tokenizer& tokenizer, SourceProbe& probe) {
    Encoder encoder(tokenizer);
    const Seconds began = clock_.now();
    std::int64_t bytes = 0;
    for (const std::string& text : kept_) {
      if (clock_.now() - began >= budget_) break;
      encoder.encode(text, tokens_);
      tokens_.push_back(tokenizer.eos());
      bytes += static_cast<std::int64_t>(text.size());
      ends_.emplace_back(tokens_.size(), text.size());
    }
    tokenizing_ = clock_.now() - began;
    probe.encoded = Bytes(bytes);
    probe.tokens = static_cast<std::int64_t>(tokens_.size());
  }

  Status pack_them(const Tokenizer& tokenizer, const BuildOptions& options) {
    const std::unique_ptr<Store> memory = make_memory_store();
    const Seconds began = clock_.now();
    TokenShardWriter writer =
        TRY(TokenShardWriter::create(*memory, "tokens", {tokenizer.hash(), tokenizer.vocabulary(), tokenizer.eos()}));
    std::size_t begin = 0;
    for (const auto& [end, bytes] : ends_) {
      TRY(writer.add(std::span(tokens_).subspan(begin, end - begin), static_cast<std::int64_t>(bytes)));
      begin = end;
    }
    TRY(writer.finish());
    std::vector<TokenShard> shards;
    shards.push_back(TRY(TokenShard::open(*memory, "tokens")));
    if (options.target_length == 0) TRY(pack(shards, tokenizer, options.sequence_length, options.policy));
    packing_ = clock_.now() - began;
    return {};
  }

  // Seconds of each stage per byte of text.
  void finish(const Kind& kind, SourceProbe& probe) const {
    const auto add = [&](const char* name, Seconds time, Bytes of) {
      if (of.count() > 0) probe.stages.emplace_back(name, Seconds(time.count() / static_cast<double>(of.count())));
    };
    add("open", timed_.opening(), probe.text);
    add("read", reading_, probe.text);
    if (kind.compression != Compression::none && !records_of(kind.format))
      add("decompress", decompressing_, probe.text);
    add("decode", rest_of(whole_, reading_ + timed_.opening() + decompressing_), probe.text);
    add("tokenize", tokenizing_, probe.encoded);
    add("pack", packing_, probe.encoded);
  }

 private:
  static Seconds rest_of(Seconds whole, Seconds part) { return std::max(whole - part, Seconds()); }

  Status read_file(const std::string& path, Seconds began, SourceProbe& probe) {
    const Seconds opened = clock_.now();
    TextReader reader({&timed_, {path}, files_.prefix}, text_);
    for (Document document; TRY(reader.next(document));) {
      if (kept_bytes_ < kEncoded) {
        kept_bytes_ += Bytes(static_cast<std::int64_t>(document.text.size()));
        kept_.push_back(document.text);
      }
      if (clock_.now() - began >= budget_) break;
    }
    whole_ += clock_.now() - opened;
    ++probe.opened;
    probe.documents += reader.stats().documents;
    probe.text += Bytes(reader.stats().bytes);
    return {};
  }

  const TextFiles& files_;
  const TextOptions& text_;
  Clock& clock_;
  Seconds budget_;
  TimedStore timed_;
  Seconds whole_, reading_, decompressing_, tokenizing_, packing_;
  std::vector<std::string> kept_;
  Bytes kept_bytes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::pair<std::size_t, std::size_t>> ends_;  // of a document: in the tokens; its bytes of text
};

}  // namespace

Result<std::vector<SourceProbe>> probe_sources(const BuildOptions& options, const Tokenizer* tokenizer, Clock& clock,
                                               const FeedProbeOptions& how) {
  const TextFiles& all = options.train;
  std::map<Kind, TextFiles> kinds;
  for (const std::string& path : all.paths) {
    const Kind kind{format_of(path, options.train_text.format), compression_of(path, options.train_text.compression)};
    TextFiles& files = kinds.try_emplace(kind, TextFiles{all.store, {}, all.prefix}).first->second;
    files.paths.push_back(path);
  }
  const Seconds each = how.budget * (1 / (3.0 * static_cast<double>(std::max<std::size_t>(1, kinds.size()))));
  std::vector<SourceProbe> probes;
  for (const auto& [kind, files] : kinds) {
    SourceProbe probe;
    probe.kind = name_of(kind);
    probe.files = static_cast<std::int64_t>(files.paths.size());
    for (const std::string& path : files.paths) probe.size += TRY(files.store->size(path));
    SourceTimer timer(files, options.train_text, clock, each);
    TRY(timer.read(probe));
    if (kind.compression != Compression::none && !records_of(kind.format)) TRY(timer.decompress(kind.compression));
    if (tokenizer != nullptr) {
      timer.tokenize(*tokenizer, probe);
      TRY(timer.pack_them(*tokenizer, options));
    }
    timer.finish(kind, probe);
    probes.push_back(std::move(probe));
  }
  return probes;
}

}  // namespace systole
