#include "execute/data/contamination.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "ground/base/hash.h"
#include "ground/base/in_order.h"

namespace systole {
namespace {

// A document by the files of a list of texts.
struct Place {
  std::uint32_t text = 0, file = 0;
  std::int64_t number = 0;
};

DocumentPlace named(std::span<const ComparedText> texts, const Place& place) {
  const ComparedText& text = texts[place.text];
  const std::string& path = text.files.paths[place.file];
  return {text.files.prefix + path, place.number, records_of(format_of(path, text.options.format)).has_value()};
}

bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) > 127;
}

// Appends the hash of every N-gram of a text, whose letters become lower case. `words`: scratch.
void add_ngrams(std::string& text, std::size_t count, std::vector<std::uint64_t>& words,
                std::vector<std::uint64_t>& ngrams) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  words.clear();
  for (std::size_t at = 0; at < text.size();) {
    if (!in_word(text[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    while (at < text.size() && in_word(text[at])) ++at;
    words.push_back(hash64(std::string_view(text).substr(begin, at - begin)));
    if (words.size() >= count) ngrams.push_back(hash64(std::as_bytes(std::span(words).last(count))));
  }
}

constexpr std::int64_t kUnitBytes = std::int64_t{256} << 10, kToldBytes = std::int64_t{4} << 20;

// Documents that one thread works on at a time. Reused, it keeps its memory.
struct Unit {
  struct Placed {
    Place place;
    std::size_t end = 0;  // of its values; they begin where those of the one before end
    bool taken = true;
  };
  std::vector<Document> texts;
  std::vector<Placed> documents;      // of `texts`, the first
  std::vector<std::uint64_t> values;  // N-grams, or where they are in an index
  std::vector<std::uint64_t> scratch;

  Document& next_text() {
    if (texts.size() == documents.size()) texts.emplace_back();
    return texts[documents.size()];
  }
};

// Texts, read one after another into units.
class UnitReader {
 public:
  UnitReader(std::span<const ComparedText> texts, std::function<void(Bytes)> progress)
      : texts_(texts), progress_(std::move(progress)) {}

  // False at the end of the last text.
  Result<bool> fill(Unit& unit) {
    unit.documents.clear();
    for (std::int64_t bytes = 0; bytes < kUnitBytes && text_ < texts_.size();) {
      if (!reader_) start();
      Document& document = unit.next_text();
      if (!TRY(reader_->next(document))) {
        reader_.reset();
        ++text_;
        continue;
      }
      bytes += document.bytes;
      const auto file = static_cast<std::uint32_t>(reader_->stats().files - 1);
      unit.documents.push_back({{static_cast<std::uint32_t>(text_), file, reader_->number()}});
      tell();
    }
    return !unit.documents.empty();
  }

 private:
  void start() {
    reader_.emplace(texts_[text_].files, texts_[text_].options);
    told_ = 0;
  }
  void tell() {
    const std::int64_t read = reader_->stats().bytes;
    if (read - told_ < kToldBytes) return;
    progress_(Bytes(read - told_));
    told_ = read;
  }

  std::span<const ComparedText> texts_;
  std::function<void(Bytes)> progress_;
  std::size_t text_ = 0;
  std::optional<TextReader> reader_;
  std::int64_t told_ = 0;
};

// Hashes as a set with a number for each: sorted, with the first of each range of leading bits.
class HashIndex {
 public:
  static constexpr std::size_t kAbsent = ~std::size_t{0};

  explicit HashIndex(std::vector<std::uint64_t> hashes) : hashes_(std::move(hashes)) {
    std::ranges::sort(hashes_);
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    shift_ = 63 - std::max(0, static_cast<int>(std::bit_width(hashes_.size() / 4)) - 1);
    starts_.resize((std::size_t{1} << (64 - shift_)) + 1);
    for (const std::uint64_t hash : hashes_) ++starts_[(hash >> shift_) + 1];
    for (std::size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  }

  std::size_t size() const { return hashes_.size(); }
  std::size_t find(std::uint64_t hash) const {
    const std::size_t end = starts_[(hash >> shift_) + 1];
    for (std::size_t at = starts_[hash >> shift_]; at < end; ++at)
      if (hashes_[at] == hash) return at;
    return kAbsent;
  }

 private:
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> starts_;
  int shift_ = 63;
};

class Comparison {
 public:
  Comparison(std::span<const ComparedText> looked_for, std::span<const ComparedText> training,
             const ContaminationOptions& options)
      : looked_for_(looked_for), training_(training), options_(options) {
    const std::int64_t a_word = 40 + static_cast<std::int64_t>((training.size() + 7) / 8);
    most_ = static_cast<std::size_t>(std::clamp<std::int64_t>(options.memory.count() / a_word, 1, 1 << 30));
  }

  Result<std::vector<Contamination>> compare() {
    result_.resize(looked_for_.size());
    for (Contamination& one : result_) one.with.resize(training_.size());
    TRY(each_document(looked_for_, nullptr, [&](const Place& place, std::span<const std::uint64_t> ngrams) -> Status {
      if (ngrams.empty()) {
        ++result_[place.text].too_short;
        return {};
      }
      if (!part_.empty() && ngrams_.size() + part_.size() + ngrams.size() + 1 > most_) TRY(finish_part());
      ngrams_.insert(ngrams_.end(), ngrams.begin(), ngrams.end());
      part_.push_back({place, ngrams_.size()});
      return {};
    }));
    if (!part_.empty()) TRY(finish_part());
    return std::move(result_);
  }

 private:
  struct PartDocument {
    Place place;
    std::size_t end = 0;  // of its N-grams; they begin where those of the one before end
  };
  using Each = std::function<Status(const Place&, std::span<const std::uint64_t>)>;

  // `each` gets the N-grams of a document; with an index, where those of it are that are there.
  Status each_document(std::span<const ComparedText> texts, const HashIndex* index, const Each& each) {
    UnitReader reader(texts, [this](Bytes more) {
      read_ += more;
      if (options_.progress) options_.progress(read_);
    });
    std::vector<Unit> units(ordered_slots(options_.threads));
    const auto use = [&](std::size_t slot) -> Status {
      std::size_t begin = 0;
      for (const Unit::Placed& document : units[slot].documents) {
        const std::size_t end = document.end;
        if (document.taken) TRY(each(document.place, std::span(units[slot].values).subspan(begin, end - begin)));
        begin = end;
      }
      return Done{};
    };
    return run_in_order(options_.threads, {[&](std::size_t slot) { return reader.fill(units[slot]); },
                                           [&](std::size_t slot) { hash(texts, index, units[slot]); }, use});
  }

  void hash(std::span<const ComparedText> texts, const HashIndex* index, Unit& unit) const {
    unit.values.clear();
    for (std::size_t i = 0; i < unit.documents.size(); ++i) {
      Unit::Placed& document = unit.documents[i];
      const std::size_t begin = unit.values.size();
      const auto& takes = texts[document.place.text].takes;
      document.taken = !takes || takes(unit.texts[i].text);
      for (std::string* text : {&unit.texts[i].text, &unit.texts[i].target})
        if (document.taken) add_ngrams(*text, static_cast<std::size_t>(options_.words), unit.scratch, unit.values);
      if (index != nullptr) keep_found(*index, begin, unit.values);
      document.end = unit.values.size();
    }
  }

  // Of the N-grams from `begin` on, leaves where they are in the index, of those that are.
  static void keep_found(const HashIndex& index, std::size_t begin, std::vector<std::uint64_t>& values) {
    std::size_t kept = begin;
    for (std::size_t i = begin; i < values.size(); ++i) {
      const std::size_t at = index.find(values[i]);
      if (at != HashIndex::kAbsent) values[kept++] = at;
    }
    values.resize(kept);
  }

  // Reads the training text for what is looked for now, and forgets that.
  Status finish_part() {
    const HashIndex index(ngrams_);
    std::vector<std::uint32_t> first(index.size());  // 1 + place in `places` of the document that has it first
    std::vector<std::vector<bool>> in(training_.size(), std::vector<bool>(index.size()));
    std::vector<Place> places;
    TRY(each_document(training_, &index, [&](const Place& place, std::span<const std::uint64_t> found) -> Status {
      bool kept = false;
      for (const std::uint64_t at : found) {
        in[place.text][at] = true;
        if (first[at] != 0) continue;
        if (!kept) places.push_back(place);
        kept = true;
        first[at] = static_cast<std::uint32_t>(places.size());
      }
      return {};
    }));
    std::size_t begin = 0;
    for (const PartDocument& document : part_) {
      count(document.place, std::span(ngrams_).subspan(begin, document.end - begin), index, first, in, places);
      begin = document.end;
    }
    part_.clear();
    ngrams_.clear();
    return {};
  }

  void count(const Place& place, std::span<const std::uint64_t> ngrams, const HashIndex& index,
             std::span<const std::uint32_t> first, std::span<const std::vector<bool>> in,
             std::span<const Place> places) {
    Contamination& all = result_[place.text];
    ++all.documents;
    all.ngrams += static_cast<std::int64_t>(ngrams.size());
    std::vector<std::int64_t> with(training_.size());
    std::unordered_map<std::uint32_t, std::int64_t> seen_first;
    std::int64_t found = 0;
    for (const std::uint64_t hash : ngrams) {
      const std::size_t at = index.find(hash);
      if (first[at] == 0) continue;
      ++found;
      ++seen_first[first[at] - 1];
      for (std::size_t t = 0; t < with.size(); ++t) with[t] += in[t][at] ? 1 : 0;
    }
    if (found == 0) return;
    ++all.all.documents;
    all.all.ngrams += found;
    for (std::size_t t = 0; t < with.size(); ++t) {
      all.with[t].documents += with[t] > 0 ? 1 : 0;
      all.with[t].ngrams += with[t];
    }
    const auto most = *std::ranges::max_element(seen_first, [](const auto& a, const auto& b) {
      return std::pair(a.second, b.first) < std::pair(b.second, a.first);  // of equal ones the earlier
    });
    const Place& there = places[most.first];
    keep_if_among_the_worst(all.worst, {named(looked_for_, place), static_cast<std::int64_t>(ngrams.size()), found,
                                        there.text, named(training_, there), most.second});
  }

  void keep_if_among_the_worst(std::vector<Contamination::Worst>& worst, Contamination::Worst one) const {
    const auto share = [](const Contamination::Worst& w) {
      return std::pair(static_cast<double>(w.found) / static_cast<double>(w.ngrams), w.found);
    };
    worst.insert(std::ranges::upper_bound(worst, share(one), std::greater<>(), share), std::move(one));
    if (worst.size() > options_.worst) worst.pop_back();
  }

  const std::span<const ComparedText> looked_for_, training_;
  const ContaminationOptions& options_;
  std::size_t most_ = 0;  // N-grams of a part
  Bytes read_;
  std::vector<PartDocument> part_;
  std::vector<std::uint64_t> ngrams_;  // of the part's documents, one after the other
  std::vector<Contamination> result_;
};

}  // namespace

std::string to_string(const DocumentPlace& place) {
  return fmt::format("{}{}{}", place.file, place.is_record ? ", record " : ":", place.number);
}

Result<std::vector<Contamination>> find_contamination(std::span<const ComparedText> looked_for,
                                                      std::span<const ComparedText> training,
                                                      const ContaminationOptions& options) {
  CHECK(options.words >= 1 && options.threads >= 1, "runs of {} words, {} threads", options.words, options.threads);
  return Comparison(looked_for, training, options).compare();
}

}  // namespace systole
