#include "predict/prove/proof_cache.h"

#include <gtest/gtest.h>

namespace systole::prove {
namespace {

Proof proof(const std::string& made) {
  Proof all;
  all.slice = "v5e:2x2";
  all.slice_devices = 4;
  all.partitions = 4;
  all.compiler = "libtpu 0.0.51, PJRT API 0.116";
  all.made = made;
  all.fits = true;
  all.whole = true;
  all.memory = CompiledMemory{Bytes(10), Bytes(20), Bytes(5), Bytes(7), Bytes(1), Bytes(3), Bytes(100)};
  all.flops = 1.5e12;
  all.compute = Seconds(0.25);
  all.executed.collectives = {{"all_reduce", "a \"quoted\" name\n", Bytes(4096), 4, 1, 3}};
  all.executed.untimed = {{"copy-start", 2, 6, Bytes(512)}};
  all.executed.by_op = {{"", 3}, {"contract", 1e9}};
  all.executed.endless = {"while.3"};
  all.executed.cycles = 375e6;
  all.executed.timed = 12;
  all.took = Seconds(4.5);
  all.took_memory = Bytes(1 << 30);
  return all;
}

TEST(ProofCache, gives_back_what_it_was_given) {
  const std::unique_ptr<Store> store = make_memory_store();
  ProofCache cache(*store);
  EXPECT_FALSE(cache.find("a"));
  cache.keep("a", proof("2026-11-22T10:00:00.000Z")).value();
  EXPECT_EQ(cache.find("a"), proof("2026-11-22T10:00:00.000Z"));
  Proof refused;
  refused.refusal = "Ran out of memory";
  cache.keep("b", refused).value();
  EXPECT_EQ(cache.find("b"), refused);
  EXPECT_EQ(cache.list().value().size(), 2U);
}

// A proof with any byte lost or changed is not used, and is removed.
TEST(ProofCache, what_is_damaged_is_removed) {
  const std::unique_ptr<Store> store = make_memory_store();
  ProofCache cache(*store);
  cache.keep("a", proof("2026-11-22T10:00:00.000Z")).value();
  const std::string whole = read_text(*store, "a.json").value();
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    write_whole(*store, "a.json", whole.substr(0, length)).value();
    EXPECT_FALSE(cache.find("a")) << length;
    EXPECT_FALSE(store->exists("a.json").value()) << length;
  }
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    std::string changed = whole;
    changed[at] = changed[at] == 'z' ? 'y' : 'z';
    write_whole(*store, "a.json", changed).value();
    EXPECT_TRUE(cache.list().value().empty()) << at;
    EXPECT_FALSE(store->exists("a.json").value()) << at;
  }
}

TEST(ProofCache, holds_no_more_than_its_limit) {
  const std::unique_ptr<Store> store = make_memory_store();
  ProofCache large(*store);
  large.keep("1", proof("2026-11-22T10:00:01.000Z")).value();
  const Bytes one = large.list().value().at(0).size;
  ProofCache cache(*store, one * 3);
  for (const char* key : {"2", "3", "5", "4"})
    cache.keep(key, proof(std::string("2026-11-22T10:00:0") + key + ".000Z")).value();
  std::string left;
  for (const ProofCache::Entry& entry : cache.list().value()) left += entry.key;
  EXPECT_EQ(left, "543") << "what was kept first goes, and the newest proof is told first";
}

TEST(ProofCache, folder) {
  EXPECT_EQ(cache_folder("/c", "/h"), "/c/systole/prove");
  EXPECT_EQ(cache_folder(nullptr, "/h"), "/h/.cache/systole/prove");
  EXPECT_EQ(cache_folder("", ""), "");
}

}  // namespace
}  // namespace systole::prove
