#pragma once
// How much of held-out or evaluation text also stands in training text: runs of N words (13 in Brown et al.,
// arXiv:2005.14165, appendix C) that both have. A word is a run of letters, digits and bytes above 127, in lower case;
// what stands between words does not count. N-grams are compared by 64-bit hashes: of a billion held-out and a billion
// training N-grams, the chance is 5% that two are equal by accident.
//
// Documents are read from the texts themselves, so that each is known by its file and its line or record. Those to look
// for are read once, in parts that fit the memory; all training text is read once for each part. One thread reads, and
// all hash and look up; what is found does not depend on their number.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/text_source.h"

namespace systole {

// Of these files, the documents that `takes` takes; all without it.
struct ComparedText {
  std::string name;  // for people: of a source, or a file
  TextFiles files;
  TextOptions options;
  std::function<bool(std::string_view text)> takes = {};  // called from several threads
};

struct DocumentPlace {
  std::string file;
  std::int64_t number = 0;  // as TextReader::number
  bool is_record = false;
  bool operator==(const DocumentPlace&) const = default;
};
std::string to_string(const DocumentPlace& place);  // "a.jsonl:17", "a.tfrecord, record 16"

struct ContaminationOptions {
  std::int64_t words = 13;  // of an N-gram
  int threads = 1;
  std::size_t worst = 5;                  // documents to name of each text
  Bytes memory = kGiB;                    // 40 bytes a word of the text looked for, an eighth more for each source
  std::function<void(Bytes)> progress{};  // text read so far, each reading counted
};

struct Contamination {
  struct Shared {
    std::int64_t documents = 0;  // with an N-gram that training has too
    std::int64_t ngrams = 0;     // found there
    bool operator==(const Shared&) const = default;
  };
  struct Worst {
    DocumentPlace place;
    std::int64_t ngrams = 0, found = 0;
    // The training document in which most of them are seen first.
    std::size_t training = 0;  // of the texts given
    DocumentPlace there;
    std::int64_t found_there = 0;
  };
  std::int64_t documents = 0, ngrams = 0;
  std::int64_t too_short = 0;  // documents of fewer words, not counted above
  Shared all;                  // with any training text
  std::vector<Shared> with;    // with each training text
  std::vector<Worst> worst;    // the largest share first
};

// For each text looked for. REQUIRES: words >= 1, threads >= 1. Errors: those of TextReader.
Result<std::vector<Contamination>> find_contamination(std::span<const ComparedText> looked_for,
                                                      std::span<const ComparedText> training,
                                                      const ContaminationOptions& options);

}  // namespace systole
