#include "execute/data/mixture.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>

#include "execute/data/row_order.h"
#include "execute/data/sample.h"
#include "ground/base/counted.h"

namespace systole {
namespace {

constexpr int kVersion = 1;                // of the order: another gives other rows
constexpr std::uint64_t kHeldOutSeed = 0;  // of the order of held-out rows and batches: the same for every run

std::vector<double> normalised(std::vector<double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  for (double& value : values) value /= sum;
  return values;
}

// Phases of weights; without any, by size.
std::vector<MixtureOptions::Phase> phases_of(const MixtureOptions& options, std::span<const std::int64_t> sizes) {
  if (!options.schedule.empty()) return options.schedule;
  MixtureOptions::Phase phase{0, {}};
  for (const MixtureOptions::Source& source : options.sources)
    if (source.weight) phase.weights.push_back(*source.weight);
  if (phase.weights.empty()) phase.weights = weights_by_size(sizes, options.temperature);
  return {phase};
}

// The rows of all parts one after the other. Null parts have no rows. A part is let go of when its rows are
// taken, so no more than one of them is there twice.
std::shared_ptr<const PackedTokens> joined(std::vector<std::shared_ptr<const PackedTokens>> parts) {
  std::erase(parts, nullptr);
  if (parts.empty()) return nullptr;
  auto all = std::make_shared<PackedTokens>();
  all->bos = parts[0]->bos;
  Packing& packing = all->packing;
  packing.policy = parts[0]->packing.policy;
  packing.sequence_length = parts[0]->packing.sequence_length;
  std::uint64_t before = 0;  // tokens of the parts before
  for (std::shared_ptr<const PackedTokens>& part : parts) {
    const Packing& its = part->packing;
    packing.tokens += its.tokens;
    packing.bytes += its.bytes;
    const std::uint64_t pieces = packing.pieces.size();
    packing.pieces.reserve(packing.pieces.size() + its.pieces.size());
    packing.first.reserve(packing.first.size() + its.first.size() - 1);
    for (Piece piece : its.pieces) {
      piece.token += before;
      packing.pieces.push_back(piece);
    }
    for (std::size_t row = 1; row < its.first.size(); ++row) packing.first.push_back(pieces + its.first[row]);
    for (const TokenShard& shard : part->shards) {
      before += static_cast<std::uint64_t>(shard.info().tokens);
      all->shards.push_back(shard);
    }
    part.reset();
  }
  return all;
}

void add(SplitTokens& into, const SplitTokens& split) {
  into.shards.insert(into.shards.end(), split.shards.begin(), split.shards.end());
  into.documents += split.documents;
  into.tokens += split.tokens;
  into.bytes += split.bytes;
}

TokensManifest joined(const std::vector<Mixture::Part>& parts, const MixtureInputs& inputs) {
  TokensManifest all{.key = inputs.key,
                     .inputs = inputs.text,
                     .tokenizer = parts[0].manifest.tokenizer,
                     .vocabulary = parts[0].manifest.vocabulary};
  for (const Mixture::Part& part : parts) {
    const TokensManifest& m = part.manifest;
    all.sources.insert(all.sources.end(), m.sources.begin(), m.sources.end());
    add(all.train, m.train);
    add(all.held_out, m.held_out);
    all.empty += m.empty;
    all.replaced += m.replaced;
    all.skipped += m.skipped;
    all.filtered += m.filtered;
    all.repeated += m.repeated;
    all.cut += m.cut;
  }
  return all;
}

Result<MixtureOrder> order_of(const Mixture& mixture) {
  std::vector<MixtureSource> sources;
  std::vector<std::int64_t> units, rows;
  for (std::size_t s = 0; s < mixture.parts.size(); ++s) {
    const MixtureOptions::Source& source = mixture.options.sources[s];
    sources.push_back({source.name, mixture.parts[s].rows, source.epochs});
    units.push_back(mixture.units(s));
    rows.push_back(mixture.parts[s].rows);
  }
  std::vector<MixturePhase> phases;
  for (const MixtureOptions::Phase& phase : mixture.phases)
    phases.push_back({phase.from, shares_of_rows(phase.weights, units, rows)});
  return MixtureOrder::make(std::move(sources), phases, mixture.options.exhausted, mixture.options.seed);
}

// Each source's share of the tokenizer's sample: its mean over the phases.
std::vector<double> sample_shares(const MixtureOptions& options, std::span<const std::int64_t> sizes) {
  std::vector<double> shares(options.sources.size());
  for (const MixtureOptions::Phase& phase : phases_of(options, sizes)) {
    const std::vector<double> weights = normalised(phase.weights);
    for (std::size_t s = 0; s < shares.size(); ++s) shares[s] += weights[s];
  }
  return normalised(std::move(shares));
}

// By "source NAME", "by", ...; what follows in the line.
std::map<std::string, std::string> lines_of(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::size_t space = line.find(' ');
    if (line.starts_with("source ")) space = line.find(' ', space + 1);
    if (space == line.npos) continue;
    std::string& rest = lines[line.substr(0, space)];
    rest += (rest.empty() ? "" : "; ") + line.substr(space + 1);
  }
  return lines;
}

}  // namespace

const char* name_of(MixtureUnit unit) {
  switch (unit) {
    case MixtureUnit::documents: return "documents";
    case MixtureUnit::bytes: return "bytes";
    case MixtureUnit::tokens: break;
  }
  return "tokens";
}

const char* name_of(Exhausted rule) {
  switch (rule) {
    case Exhausted::stop: return "stop";
    case Exhausted::rescale: return "rescale";
    case Exhausted::repeat: break;
  }
  return "repeat";
}

std::int64_t Mixture::units(std::size_t source) const {
  const SplitTokens& train = parts[source].manifest.train;
  switch (options.by) {
    case MixtureUnit::documents: return train.documents;
    case MixtureUnit::bytes: return train.bytes;
    case MixtureUnit::tokens: break;
  }
  return train.tokens;
}

std::vector<double> Mixture::asked(std::int64_t rows) const {
  std::vector<double> shares(parts.size());
  for (std::size_t p = 0; p < phases.size(); ++p) {
    const std::int64_t until = p + 1 < phases.size() ? std::min(rows, phases[p + 1].from) : rows;
    const std::vector<double> weights = normalised(phases[p].weights);
    for (std::size_t s = 0; s < parts.size() && until > phases[p].from; ++s)
      shares[s] += weights[s] * static_cast<double>(until - phases[p].from) / static_cast<double>(rows);
  }
  return shares;
}

std::vector<double> Mixture::drawn(std::span<const std::int64_t> counts) const {
  std::vector<double> shares;
  for (std::size_t s = 0; s < parts.size(); ++s)
    shares.push_back(static_cast<double>(counts[s]) * static_cast<double>(units(s)) /
                     static_cast<double>(parts[s].rows));
  return normalised(std::move(shares));
}

Mixture::HeldOutPass Mixture::held_out_pass(std::int64_t batch_rows) const {
  HeldOutPass stored;
  std::int64_t first = 0;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const std::int64_t rows = parts[s].held_out_rows, batches = (rows + batch_rows - 1) / batch_rows;
    const RowOrder within(std::max<std::int64_t>(1, rows), kHeldOutSeed, true);
    for (std::int64_t i = 0; i < batches * batch_rows; ++i)
      stored.rows.push_back(i < rows ? first + within.at(0, i) : -1);
    stored.sources.insert(stored.sources.end(), static_cast<std::size_t>(batches), s);
    first += rows;
  }
  HeldOutPass pass;
  const RowOrder among(std::max<std::int64_t>(1, std::ssize(stored.sources)), kHeldOutSeed, true);
  for (std::int64_t b = 0; b < std::ssize(stored.sources); ++b) {
    const std::int64_t batch = among.at(0, b);
    pass.sources.push_back(stored.sources[static_cast<std::size_t>(batch)]);
    const auto begin = stored.rows.begin() + batch * batch_rows;
    pass.rows.insert(pass.rows.end(), begin, begin + batch_rows);
  }
  return pass;
}

std::int64_t Mixture::held_out_batches(std::int64_t batch_rows) const {
  std::int64_t batches = 0;
  for (const Part& part : parts) batches += (part.held_out_rows + batch_rows - 1) / batch_rows;
  return batches;
}

MixtureInputs mixture_inputs(const MixtureOptions& options, std::span<const DatasetInputs> texts) {
  MixtureInputs inputs;
  inputs.text = fmt::format("mixture {}\nby {}\nexhausted {}\nseed {}\n", kVersion, name_of(options.by),
                            name_of(options.exhausted), options.seed);
  if (options.temperature != 1) inputs.text += fmt::format("temperature {}\n", options.temperature);
  for (std::size_t s = 0; s < texts.size(); ++s) {
    const MixtureOptions::Source& source = options.sources[s];
    inputs.text += fmt::format("source {} text {}", source.name, texts[s].key);
    if (source.weight) inputs.text += fmt::format(" weight {}", *source.weight);
    if (source.epochs) inputs.text += fmt::format(" epochs {}", *source.epochs);
    inputs.text += "\n";
  }
  for (const MixtureOptions::Phase& phase : options.schedule) {
    inputs.text += fmt::format("schedule from row {}:", phase.from);
    for (std::size_t s = 0; s < phase.weights.size(); ++s)
      inputs.text += fmt::format(" {} {}", options.sources[s].name, phase.weights[s]);
    inputs.text += "\n";
  }
  inputs.key = to_hex(hash128(inputs.text)).substr(0, 16);
  return inputs;
}

std::string other_mixture(const std::string& then, const std::string& now) {
  const std::map<std::string, std::string> before = lines_of(then), after = lines_of(now);
  std::string told;
  const auto tell = [&told](const std::string& text) { told += (told.empty() ? "" : "; ") + text; };
  const auto called = [](const std::string& line) {
    return line.starts_with("source ") ? fmt::format("the source '{}'", line.substr(7)) : "its " + line;
  };
  for (const auto& [line, rest] : after) {
    const auto was = before.find(line);
    if (was == before.end())
      tell(called(line) + " is new");
    else if (was->second != rest)
      tell(fmt::format("{} is now {}, and was {}", called(line), rest, was->second));
  }
  for (const auto& [line, rest] : before)
    if (!after.contains(line)) tell(called(line) + " is gone");
  return told;
}

Result<JoinedDatasets> join_datasets(std::vector<Dataset> datasets, MixtureOptions options, const MixtureInputs& inputs,
                                     bool held_out) {
  CHECK(!datasets.empty() && datasets.size() == options.sources.size(), "{} datasets of {} sources", datasets.size(),
        options.sources.size());
  Mixture mixture{.options = std::move(options)};
  std::vector<std::shared_ptr<const PackedTokens>> train, held;
  std::vector<std::string> built;
  std::vector<std::int64_t> sizes;
  for (std::size_t s = 0; s < datasets.size(); ++s) {
    Dataset& dataset = datasets[s];
    CHECK(dataset.manifest.tokenizer == datasets[0].manifest.tokenizer, "sources with several tokenizers");
    CHECK(dataset.train != nullptr, "the source '{}' has no rows", mixture.options.sources[s].name);
    mixture.parts.push_back({std::move(dataset.manifest), dataset.train->packing.rows(),
                             dataset.held_out == nullptr ? 0 : dataset.held_out->packing.rows()});
    sizes.push_back(mixture.units(s));
    train.push_back(std::move(dataset.train));
    held.push_back(std::move(dataset.held_out));
    for (const std::string& what : dataset.built)
      built.push_back(fmt::format("{} of {}", what, mixture.options.sources[s].name));
  }
  mixture.phases = phases_of(mixture.options, sizes);
  mixture.order = std::make_shared<const MixtureOrder>(TRY(order_of(mixture)));
  Dataset all{joined(mixture.parts, inputs), datasets[0].tokenizer, joined(std::move(train)), joined(std::move(held)),
              std::move(built)};
  if (held_out && all.held_out == nullptr) {
    return error(ErrorKind::invalid, "no document of any source was set aside: there are {}",
                 counted(all.manifest.train.documents, "document"))
        .hinted("raise data.held_out.fraction, or cut the text into smaller documents");
  }
  return JoinedDatasets{std::move(all), std::move(mixture)};
}

Result<Tokenizer> train_on_sources(std::span<const BuildOptions> sources, const MixtureOptions& options) {
  std::vector<std::int64_t> sizes;
  for (const BuildOptions& source : sources) {
    sizes.push_back(0);
    for (const std::string& path : source.train.paths) sizes.back() += TRY(source.train.store->size(path)).count();
  }
  const std::vector<double> shares = sample_shares(options, sizes);
  std::vector<std::string> texts;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const BuildOptions& source = sources[s];
    const auto limit = static_cast<double>(source.tokenizer.sample.count()) * shares[s];
    TextSample sample(Bytes(std::max<std::int64_t>(1, static_cast<std::int64_t>(limit))), source.seed);
    TextReader reader(source.train, source.train_text);
    std::int64_t documents = 0;
    for (Document document; TRY(reader.next(document));) {
      if (is_held_out(document.text, source.held_out_fraction, source.seed)) continue;
      ++documents;
      sample.add(document);
      if (source.progress && documents % 4096 == 0) source.progress("reading", Bytes(reader.stats().bytes));
    }
    if (documents == 0)
      return error(ErrorKind::invalid, "the source '{}' has no document to train on", options.sources[s].name)
          .hinted("check its `document:` and its files");
    for (std::string& text : sample.take()) texts.push_back(std::move(text));
  }
  if (sources[0].progress) sources[0].progress("training the tokenizer", Bytes());
  return Tokenizer::train(sources[0].tokenizer, texts);
}

std::string tokenizer_key(const MixtureOptions& options, std::span<const DatasetInputs> texts) {
  std::vector<std::int64_t> sizes;
  std::string all = "mixture's tokenizer\n";
  for (const DatasetInputs& text : texts) {
    sizes.push_back(0);
    for (const SourceFile& file : text.sources) sizes.back() += file.size.count();
    all += text.text;
  }
  for (const double share : sample_shares(options, sizes)) all += fmt::format("share {:.6f}\n", share);
  return to_hex(hash128(all)).substr(0, 16);
}

}  // namespace systole
