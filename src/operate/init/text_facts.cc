#include "operate/init/text_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "execute/data/file_patterns.h"
#include "execute/data/tokenizer.h"
#include "execute/data/utf8.h"
#include "ground/base/counted.h"
#include "ground/base/files.h"
#include "ground/store/store.h"

namespace systole {
namespace {

constexpr Bytes kRead = kMiB * 8;                         // of the text, to count documents
constexpr Bytes kTrial = kMiB;                            // of that, to train a tokenizer
constexpr std::int64_t kUnpacked = 3;                     // bytes of English text per byte of .gz or .zst, roughly
constexpr std::int64_t kFewestDocuments = 20;             // with fewer, another rule may split the text better
constexpr std::int64_t kFixedTokens = 259;                // in every tokenizer: 256 bytes and three special tokens
constexpr double kShares[] = {0.05, 0.1, 0.2, 0.3, 0.5};  // held-out shares to try; the first is the default

struct FewDocuments {
  std::vector<std::string> texts;
  TextStats stats;
  bool whole = false;
};

Result<FewDocuments> read_some(const TextFiles& files, DocumentRule rule) {
  TextOptions options;
  options.document = rule;
  options.invalid_utf8 = InvalidUtf8::replace;
  TextReader reader(files, options);
  FewDocuments read;
  for (Document document; reader.stats().bytes < kRead.count();) {
    if (!TRY(reader.next(document))) {
      read.whole = true;
      break;
    }
    read.texts.push_back(std::move(document.text));
  }
  read.stats = reader.stats();
  return read;
}

// The smallest share that holds out a document and leaves one; 0: none does. The seed is the default of data.seed.
double held_out_share(const std::vector<std::string>& texts) {
  for (const double share : kShares) {
    const auto aside =
        std::ranges::count_if(texts, [&](const std::string& text) { return is_held_out(text, share, 0); });
    if (aside > 0 && aside < std::ssize(texts)) return share;
  }
  return 0;
}

struct CutText {
  DocumentRule rule = DocumentRule::line;
  FewDocuments read;
  double held_out = 0;
};

// Splits by the first rule that gives enough documents, empty lines before lines; otherwise by one that gives at least
// two.
Result<CutText> cut(const TextFiles& files, const std::string& shown) {
  std::optional<CutText> best;
  std::optional<Error> refused;
  for (const DocumentRule rule : {DocumentRule::blank_line, DocumentRule::line}) {
    Result<FewDocuments> read = read_some(files, rule);
    if (!read.ok()) {
      refused = std::move(read).error();
      continue;
    }
    CutText made{rule, *std::move(read), 0};
    made.held_out = held_out_share(made.read.texts);
    if (made.held_out == 0) continue;
    const bool enough = std::ssize(made.read.texts) >= kFewestDocuments;
    if (enough || !best) best = std::move(made);
    if (enough) break;
  }
  if (best) return *std::move(best);
  if (refused) return *std::move(refused);
  return error(ErrorKind::invalid, "{} is one document: none can be set aside to measure the model on", shown)
      .hinted("a text with an empty line, or a new line, between its documents; or several files");
}

Result<Bytes> size_of(Store& root, const std::vector<std::string>& paths, bool& packed) {
  Bytes bytes;
  for (const std::string& path : paths) {
    const Bytes of_file = TRY(root.size(path));
    const bool is_packed = compression_of(path, Compression::by_name) != Compression::none;
    bytes += is_packed ? of_file * kUnpacked : of_file;
    packed = packed || is_packed;
  }
  return bytes;
}

std::int64_t usual_vocabulary(Bytes bytes) {
  return bytes < kKiB * 64 ? 512 : bytes < kMiB ? 1024 : bytes < kMiB * 16 ? 2048 : bytes < kMiB * 256 ? 4096 : 8192;
}

// Training documents, up to kTrial.
std::vector<std::string> sample_of(const CutText& text) {
  std::vector<std::string> sample;
  Bytes bytes;
  for (const std::string& each : text.read.texts) {
    if (is_held_out(each, text.held_out, 0)) continue;
    sample.push_back(each);
    if ((bytes += Bytes(each.size())) >= kTrial) break;
  }
  return sample;
}

std::int64_t distinct_characters(const std::vector<std::string>& texts) {
  std::unordered_set<std::string_view> seen;
  for (std::string_view rest : texts) {
    while (!rest.empty()) {
      const std::size_t length = std::max<std::size_t>(1, utf8_step(rest).length);
      if (length > 1 || static_cast<unsigned char>(rest[0]) >= 0x20) seen.insert(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
  return std::ssize(seen);
}

// Tries the usual vocabulary size, then smaller ones, until the text suffices.
Result<Tokenizer> trial_tokenizer(const std::vector<std::string>& sample, Bytes bytes) {
  const std::int64_t least = kFixedTokens + distinct_characters(sample) + 1;
  std::int64_t vocabulary = usual_vocabulary(bytes);
  while (vocabulary < least + least / 4) vocabulary *= 2;  // a larger sample has more distinct characters
  for (;; vocabulary = std::max(least, vocabulary * 3 / 4)) {
    Result<Tokenizer> trained = Tokenizer::train({.vocabulary = static_cast<int>(vocabulary)}, sample);
    if (trained.ok() || vocabulary == least) return trained;
  }
}

double bytes_a_token(const Tokenizer& tokenizer, const std::vector<std::string>& sample) {
  Encoder encoder(tokenizer);
  std::vector<std::int32_t> tokens;
  std::size_t bytes = 0, documents = 0;
  for (const std::string& each : sample) {
    encoder.encode(each, tokens);
    bytes += each.size() + 1;  // the end token counts for the separator
    ++documents;
    if (Bytes(bytes) >= kKiB * 256) break;
  }
  return static_cast<double>(bytes) / static_cast<double>(tokens.size() + documents);
}

}  // namespace

std::int64_t TextFacts::tokens() const {
  return static_cast<std::int64_t>(static_cast<double>(bytes.count()) / bytes_per_token);
}

Result<TextFacts> facts_of_text(const std::vector<std::string>& files) {
  TextFacts facts{.files = files};
  const std::string shown = fmt::format("{}", fmt::join(files, ", "));
  const std::unique_ptr<Store> root = TRY(open_posix_store("/"));
  std::vector<std::string> below;
  for (const std::string& file : files) {
    if (is_folder(file)) {
      Error bad = folder_for_files(file);
      bad.message += ", not a text";
      bad.hint += ", in quotes";
      return bad;
    }
    below.push_back(TRY(below_root(file)));
  }
  const TextFiles text{root.get(), TRY(expand_files(*root, below, "/")), "/"};
  facts.bytes = TRY(size_of(*root, text.paths, facts.estimated));
  if (facts.bytes < kLeastText)
    return error(ErrorKind::invalid, "{} holds {} of text, too little to train a language model on", shown,
                 to_string(facts.bytes))
        .hinted(fmt::format("a text of {} or more; --pattern linear trains without a text", to_string(kLeastText)));
  const CutText cut_text = TRY(cut(text, shown));
  facts.records = format_of(text.paths.front(), TextFormat::by_name) != TextFormat::text;
  facts.document = cut_text.rule;
  facts.held_out = cut_text.held_out;
  facts.documents = std::ssize(cut_text.read.texts);
  facts.ill_formed = cut_text.read.stats.replaced > 0;
  facts.whole = cut_text.read.whole;
  if (facts.whole) {
    facts.bytes = Bytes(cut_text.read.stats.bytes);
    facts.estimated = false;
  }
  const std::vector<std::string> sample = sample_of(cut_text);
  const Tokenizer tokenizer = TRY(trial_tokenizer(sample, facts.bytes));
  facts.vocabulary = tokenizer.vocabulary();
  facts.bytes_per_token = bytes_a_token(tokenizer, sample);
  return facts;
}

}  // namespace systole
