#pragma once
// Files in memory, and what a TextReader makes of them.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "execute/data/text_source.h"

namespace systole {

struct Reading {
  std::vector<Document> documents;
  std::optional<Error> error;
  TextStats stats;
};

class ReadsText : public testing::Test {
 protected:
  void put(const std::string& path, std::string_view text) {
    if (path.find('/') != std::string::npos) store_->make_dirs(path.substr(0, path.rfind('/'))).value();
    write_whole(*store_, path, text).value();
  }

  Reading read(std::vector<std::string> paths, TextOptions options = {}) {
    TextReader reader({store_.get(), std::move(paths), "in/"}, options);
    Reading reading;
    for (Document document;;) {
      Result<bool> more = reader.next(document);
      if (!more.ok()) reading.error = more.error();
      if (!more.ok() || !*more) break;
      reading.documents.push_back(document);
    }
    reading.stats = reader.stats();
    return reading;
  }

  std::vector<std::string> texts(const Reading& reading) {
    EXPECT_FALSE(reading.error) << to_string(*reading.error);
    std::vector<std::string> found;
    for (const Document& document : reading.documents) found.push_back(document.text);
    return found;
  }

  std::unique_ptr<Store> store_ = make_memory_store();
};

}  // namespace systole
