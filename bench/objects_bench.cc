// Reads of one object of a bucket, for curl to be timed against: bench/objects_compare.py.
//
//   objects_bench make FILE BYTES          writes the object's file, prints {"crc32c": n}
//   objects_bench gs|s3 ENDPOINT BYTES     reads bucket/object into memory at each line of standard input, and answers
//                                          {"seconds": s, "processor_seconds": s}

#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>

#include "ground/base/hash.h"
#include "ground/base/philox.h"
#include "ground/store/store_access.h"

namespace {

using namespace systole;

int make(const std::string& path, std::size_t size) {
  std::vector<std::uint32_t> numbers(size / sizeof(std::uint32_t));
  PhiloxStream random(3);
  for (std::uint32_t& number : numbers) number = random.next_u32();
  const auto bytes = std::as_bytes(std::span(numbers));
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  std::cout << fmt::format(R"({{"crc32c": {}}})", crc32c(bytes)) << std::endl;
  return 0;
}

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

}  // namespace

int main(int count, char** words) {
  CHECK(count == 4, "objects_bench make FILE BYTES, or gs|s3 ENDPOINT BYTES");
  const std::string what = words[1], where = words[2];
  const auto size = static_cast<std::size_t>(std::stoull(words[3]));
  if (what == "make") return make(where, size);
  StoreAccess access;
  access.gcs = [&]() -> Result<GcsAccess> { return GcsAccess{.endpoint = where}; };
  access.s3 = [&]() -> Result<S3Access> { return S3Access{.endpoint = where}; };
  const std::unique_ptr<ObjectStore> store = open_store({what, "bucket"}, access).value();
  std::vector<std::byte> into(size);
  for (std::string line; std::getline(std::cin, line);) {
    const double before = processor_seconds();
    const auto begin = std::chrono::steady_clock::now();
    store->get("object", 0, into).value();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::cout << fmt::format(R"({{"seconds": {}, "processor_seconds": {}}})", seconds, processor_seconds() - before)
              << std::endl;
  }
  return 0;
}
