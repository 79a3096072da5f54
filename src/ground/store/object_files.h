#pragma once
// Objects as files that can be read, without a copy of them: a range at a time, each file of the version that there was
// when it was first asked for.

#include <map>
#include <mutex>
#include <string>

#include "ground/store/object_facts.h"
#include "ground/store/read_only_store.h"

namespace systole {

class ObjectFiles : public ReadOnlyStore {
 public:
  explicit ObjectFiles(ObjectStore& objects) : objects_(objects) {}  // borrowed
  // Errors: not_found, io; busy, it was replaced meanwhile.
  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override;
  Result<Bytes> size(std::string_view path) override;
  Result<bool> exists(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view dir) override;

 private:
  Result<ObjectFacts> facts(std::string_view path);

  ObjectStore& objects_;
  std::mutex mutex_;
  std::map<std::string, ObjectFacts, std::less<>> seen_;
};

}  // namespace systole
