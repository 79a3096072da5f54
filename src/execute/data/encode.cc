// Works in rounds: reads one unit of text per thread, encodes the units in parallel, and passes them on in order.

#include "execute/data/encode.h"

#include <future>

namespace systole {
namespace {

constexpr std::int64_t kUnitBytes = std::int64_t{1} << 20;

struct Encoded {
  std::size_t end = 0;  // end of the document in the unit's tokens
  std::int64_t bytes = 0;
  bool held_out = false;
  bool cut = false;
};

class Unit {
 public:
  Unit(const Tokenizer& tokenizer, const std::optional<PairLengths>& pairs)
      : encoder_(tokenizer), bos_(tokenizer.bos()), eos_(tokenizer.eos()), pairs_(pairs) {}

  void clear() {
    texts_.clear();
    targets_.clear();
    documents_.clear();
  }

  // False if the documents ended before the unit was full.
  Result<bool> read(const EncodeStep& step) {
    clear();
    for (std::int64_t bytes = 0; bytes < kUnitBytes; bytes += documents_.back().bytes + 1) {
      Document document;
      bool held_out = false;
      if (!TRY(step.next(document, held_out))) return false;
      documents_.push_back({0, document.bytes, held_out, false});
      texts_.push_back(std::move(document.text));
      if (pairs_) targets_.push_back(std::move(document.target));
    }
    return true;
  }

  void encode() {
    tokens_.clear();
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      documents_[i].cut = encode(texts_[i], pairs_ ? pairs_->input : 0);
      if (pairs_) {
        tokens_.push_back(bos_);
        if (encode(targets_[i], pairs_->target)) documents_[i].cut = true;
      }
      tokens_.push_back(eos_);
      documents_[i].end = tokens_.size();
    }
  }

  Status write(const EncodeStep& step) const {
    std::size_t begin = 0;
    for (const Encoded& document : documents_) {
      TRY(step.sink(std::span(tokens_).subspan(begin, document.end - begin), document.bytes, document.held_out));
      if (document.cut && step.cut) step.cut();
      begin = document.end;
    }
    return Done{};
  }

 private:
  // Appends the tokens of a text, fewer than `length` unless that is 0. Returns whether it had more.
  bool encode(const std::string& text, std::size_t length) {
    const std::size_t begin = tokens_.size();
    encoder_.encode(text, tokens_);
    if (length == 0 || tokens_.size() < begin + length) return false;
    tokens_.resize(begin + length - 1);
    return true;
  }

  Encoder encoder_;
  std::int32_t bos_, eos_;
  std::optional<PairLengths> pairs_;
  std::vector<std::string> texts_, targets_;
  std::vector<Encoded> documents_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace

Status encode_documents(const Tokenizer& tokenizer, int threads, const EncodeStep& step) {
  CHECK(threads >= 1, "{} threads", threads);
  std::vector<Unit> units;
  units.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) units.emplace_back(tokenizer, step.pairs);
  for (bool more = true; more;) {
    std::vector<std::future<void>> others;  // joined by their destructors, whatever happens
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (more) {
        more = TRY(units[i].read(step));
      } else {
        units[i].clear();
      }
      if (i + 1 < units.size()) others.push_back(std::async(std::launch::async, [&unit = units[i]] { unit.encode(); }));
    }
    units.back().encode();
    for (std::future<void>& other : others) other.get();
    for (const Unit& unit : units) TRY(unit.write(step));
  }
  return Done{};
}

}  // namespace systole
