// Encrypted and signed checkpoints: what is visible on disk, and what is refused.

#include "execute/checkpoint/keys.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "execute/checkpoint/restore_parts.h"
#include "execute/checkpoint/testing/group_saves.h"
#include "ground/base/hash.h"

namespace systole::checkpoint {
namespace {

std::shared_ptr<const Keys> keys_with(std::optional<Key256> encryption, std::optional<Key256> signing,
                                      std::optional<Key256> trusted = {}) {
  auto keys = std::make_shared<Keys>();
  keys->encryption = encryption;
  keys->signing = signing;
  keys->trusted = signing ? std::optional(public_key_of(*signing)) : trusted;
  keys->encryption_ref = "env:KEY";
  return keys;
}
Key256 key_of(int number) {
  Key256 key{};
  key[0] = static_cast<std::byte>(number);
  return key;
}

// Every byte of every file of a folder.
std::string all_bytes(Store& store, const std::string& dir) {
  std::string all;
  const std::vector<std::string> names = store.list(dir).value();
  for (const std::string& name : names) {
    const std::string path = dir + "/" + name;
    all += name.ends_with('/') ? all_bytes(store, path.substr(0, path.size() - 1)) : read_text(store, path).value();
  }
  return all;
}

class Secret : public testing::Test {
 protected:
  Secret() : store_(make_memory_store()) {}
  Folder with(std::shared_ptr<const Keys> keys) { return {objects_in(*store_), "c", std::move(keys)}; }
  std::string refusal(std::shared_ptr<const Keys> keys) {
    const auto opened = open_newest(with(std::move(keys)));
    return opened ? verify_tiny(opened->checkpoint) : to_string(opened.error());
  }
  // An attack without any key: edits the manifest and fixes its first line.
  void edit_manifest(const std::string& what, const std::string& by) {
    const std::string path = with({}).manifest(30);
    std::string text = read_text(*store_, path).value();
    const std::size_t at = text.find(what);
    ASSERT_NE(at, text.npos) << what;
    text.replace(at, what.size(), by);
    const std::string rest = text.substr(text.find('\n') + 1);
    ASSERT_TRUE(write_whole(*store_, path, seal_text({kManifestFormat, kManifestVersion, "manifest"}, rest)));
  }
  void swap_files(const std::string& a, const std::string& b) {
    const auto in_a = read_all(*store_, a).value(), in_b = read_all(*store_, b).value();
    ASSERT_TRUE(write_whole(*store_, a, std::span(in_b)));
    ASSERT_TRUE(write_whole(*store_, b, std::span(in_a)));
  }

  std::unique_ptr<Store> store_;
};

TEST_F(Secret, NoPatternOfTheWeightsIsOnTheDisk) {
  const std::string pattern = "THE WEIGHTS OF THIS MODEL ARE NOBODY ELSE'S";
  std::vector<std::byte> weights(64 * 1024);
  for (std::size_t at = 0; at + pattern.size() <= weights.size(); at += 1000)
    std::memcpy(weights.data() + at, pattern.data(), pattern.size());
  SaveRequest request;
  request.step = 30;
  const Shape shape{64 * 1024 / 4};
  request.tensors = {{"w", Role::parameter, DType::f32, shape, Box::whole(shape), weights}};
  for (const bool compress : {false, true}) {
    SaveOptions options;
    options.compress = compress;
    ASSERT_TRUE(save(with(keys_with(key_of(1), {})), request, options));
    EXPECT_EQ(all_bytes(*store_, "c").find(pattern.substr(0, 12)), std::string::npos);
    std::vector<std::byte> read(weights.size());
    ASSERT_TRUE(open_step(with(keys_with(key_of(1), {})), 30)->read("w", Box::whole(shape), read));
    EXPECT_EQ(read, weights);
  }
  ASSERT_TRUE(save(with({}), request, SaveOptions()));
  EXPECT_NE(all_bytes(*store_, "c").find(pattern), std::string::npos) << "the test finds it when it is there";
}

TEST_F(Secret, AWrongKeyIsAnErrorThatSaysSo) {
  ASSERT_TRUE(save_tiny(with(keys_with(key_of(1), {})), 30, tiny_options()));
  EXPECT_EQ(refusal(keys_with(key_of(1), {})), "");
  const std::string wrong = refusal(keys_with(key_of(2), {}));
  EXPECT_NE(wrong.find("wrong key: this checkpoint was encrypted with key "), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("env:KEY is key "), std::string::npos) << wrong;
  // Without any key the hashes can be checked, but not the values.
  EXPECT_TRUE(find_damage(with({}), load_manifest(with({}), 30).value())->empty());
  const std::string none = refusal({});
  EXPECT_NE(none.find("this checkpoint is encrypted, and no key was given"), std::string::npos) << none;
  EXPECT_NE(none.find("checkpoint.encryption_key"), std::string::npos) << none;
}

TEST_F(Secret, WhatIsNotEncryptedIsNotTakenForIt) {
  ASSERT_TRUE(save_tiny(with({}), 30, tiny_options()));
  EXPECT_NE(refusal(keys_with(key_of(1), {})).find("this checkpoint is not encrypted"), std::string::npos);
}

// Each chunk of each save has its own salt, so frame numbers may restart.
TEST_F(Secret, NoNonceIsUsedTwiceWithAKey) {
  const Folder folder = with(keys_with(key_of(1), {}));
  std::set<std::string> salts;
  std::size_t chunks = 0;
  for (const std::int64_t step : {30, 30, 40}) {  // including the same values again
    ASSERT_TRUE(save_tiny(folder, step, tiny_options()));
    const Manifest manifest = load_manifest(folder, step).value();
    for (const ChunkFile& chunk : manifest.chunks) {
      ASSERT_TRUE(chunk.coding);
      EXPECT_EQ(chunk.coding->salt.size(), 64U);
      salts.insert(chunk.coding->salt);
      ++chunks;
    }
  }
  EXPECT_EQ(salts.size(), chunks);
}

TEST_F(Secret, TruncatedAndSwappedChunksAreFound) {
  const Folder folder = with(keys_with(key_of(1), {}));
  ASSERT_TRUE(save_tiny(folder, 30, tiny_options()));
  const Manifest manifest = load_manifest(folder, 30).value();
  ASSERT_GE(manifest.chunks.size(), 2U);
  std::optional<std::pair<std::size_t, std::size_t>> alike;  // of one length, so that only their bytes tell them apart
  for (std::size_t a = 0; a < manifest.chunks.size() && !alike; ++a) {
    for (std::size_t b = a + 1; b < manifest.chunks.size() && !alike; ++b) {
      if (manifest.chunks[a].bytes == manifest.chunks[b].bytes) alike = {a, b};
    }
  }
  ASSERT_TRUE(alike);
  const ChunkFile a = manifest.chunks[alike->first], b = manifest.chunks[alike->second];
  swap_files(folder.chunk(a.hash), folder.chunk(b.hash));
  EXPECT_FALSE(open_step(folder, 30));
  // Also if only lengths were checked: the tags do not verify.
  const Checkpoint from = open_step(folder, 30, Verify::lengths).value();
  EXPECT_NE(verify_tiny(from).find("does not decrypt"), std::string::npos) << verify_tiny(from);
  swap_files(folder.chunk(a.hash), folder.chunk(b.hash));
  EXPECT_EQ(refusal(folder.keys), "");
  auto bytes = read_all(*store_, folder.chunk(a.hash)).value();
  bytes.pop_back();
  ASSERT_TRUE(write_whole(*store_, folder.chunk(a.hash), std::span(bytes)));
  EXPECT_NE(refusal(folder.keys).find("bytes instead of"), std::string::npos);
}

TEST_F(Secret, AnAlteredManifestIsRefused) {
  ASSERT_TRUE(save_tiny(with(keys_with(key_of(1), {})), 30, tiny_options()));
  edit_manifest("\"model\":\"tiny\"", "\"model\":\"evil\"");
  EXPECT_NE(refusal(keys_with(key_of(1), {})).find("the manifest was altered after it was written"), std::string::npos);
}

// A text sealed without the key is rejected before it is parsed: this one is not JSON, and the error does not say so.
TEST_F(Secret, AManifestIsReadBehindItsSealAlone) {
  ASSERT_TRUE(save_tiny(with(keys_with(key_of(1), {})), 30, tiny_options()));
  edit_manifest("\"body\":{", "\"body\":{{{{");
  EXPECT_NE(refusal(keys_with(key_of(1), {})).find("altered"), std::string::npos) << refusal(keys_with(key_of(1), {}));
}

TEST_F(Secret, OnlyWhatATrustedKeySignedIsTaken) {
  const auto signer = keys_with({}, key_of(7)), reader = keys_with({}, {}, public_key_of(key_of(7)));
  ASSERT_TRUE(save_tiny(with({}), 30, tiny_options()));
  EXPECT_NE(refusal(reader).find("this checkpoint is not signed, and only those by"), std::string::npos);
  ASSERT_TRUE(save_tiny(with(keys_with({}, key_of(8))), 30, tiny_options()));
  EXPECT_NE(refusal(reader).find("this checkpoint is signed by "), std::string::npos) << refusal(reader);
  ASSERT_TRUE(save_tiny(with(signer), 30, tiny_options()));
  EXPECT_EQ(refusal(reader), "") << "the public key is enough to read";
  EXPECT_EQ(refusal({}), "") << "and who does not ask needs none";
  edit_manifest("\"model\":\"tiny\"", "\"model\":\"evil\"");
  EXPECT_NE(refusal(reader).find("the manifest was altered after it was signed"), std::string::npos);
  edit_manifest("\"model\":\"evil\"", "\"model\":\"tiny\"");
  EXPECT_EQ(refusal(reader), "");
}

// A chunk replaced by other bytes under a matching name, as with a hash collision: the SHA-256 does not match.
TEST_F(Secret, ASignedCheckpointHoldsItsChunksBySha256) {
  const Folder folder = with(keys_with({}, key_of(7)));
  ASSERT_TRUE(save_tiny(folder, 30, tiny_options()));
  const Manifest manifest = load_manifest(folder, 30).value();
  ChunkFile other = manifest.chunks[0];
  EXPECT_EQ(other.sha256.size(), 64U);
  other.sha256[0] = other.sha256[0] == '0' ? '1' : '0';
  const auto found = verify_chunk(folder, other);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("the chunk was altered"), std::string::npos);
  EXPECT_TRUE(verify_chunk(with({}), other)) << "nobody asked";
}

TEST_F(Secret, ManyWritersEncryptSignAndRestoreAnywhere) {
  const auto keys = keys_with(key_of(1), key_of(7));
  const TinyRanks ranks(30, 4, TinyCut::each_axis_a_dim);
  Endings endings(4);
  {
    Turns turns(*store_, 5);
    turns.start(4, [&](int rank, Store& store, Clock& clock) {
      SaveOptions options = group_options(rank, 4, clock);
      options.compress = true;
      endings[static_cast<std::size_t>(rank)].emplace(
          save(Folder{objects_in(store), "c", keys}, ranks.request(rank), options));
    });
    turns.run();
  }
  for (const auto& ending : endings) ASSERT_EQ(text_of(ending), "saved");
  const auto checkpoint = open_step(with(keys), 30);
  ASSERT_TRUE(checkpoint) << to_string(checkpoint.error());
  for (const int readers : {1, 2, 3, 6, 8}) EXPECT_EQ(verify_on_ranks(*checkpoint, readers, TinyCut::first_dim), "");
}

TEST_F(Secret, APartWithoutTheKeyIsRefused) {
  const auto keys = keys_with(key_of(1), {});
  const TinyRanks ranks(30, 2, TinyCut::first_dim);
  Endings endings(2);
  {
    Turns turns(*store_, 5);
    turns.start(2, [&](int rank, Store& store, Clock& clock) {
      endings[static_cast<std::size_t>(rank)].emplace(
          save(Folder{objects_in(store), "c", rank == 1 ? keys_with(key_of(2), {}) : keys}, ranks.request(rank),
               group_options(rank, 2, clock)));
    });
    turns.run();
  }
  EXPECT_NE(text_of(endings[0]).find("rank 1 wrote a part that cannot be read: wrong key"), std::string::npos)
      << text_of(endings[0]);
}

TEST(KeyRefs, AreReadWhereTheyPoint) {
  const std::string hex = to_hex_text(key_of(9));
  ASSERT_EQ(setenv("SYSTOLE_KEYS_TEST", hex.c_str(), 1), 0);
  const auto file = std::filesystem::temp_directory_path() / fmt::format("systole-keys-test-{}", hash64(hex));
  std::ofstream(file) << hex << "\n";
  using std::filesystem::perms;
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write | perms::group_read);
  const Error open = read_keys({"file:" + file.string(), "", ""}).error();
  EXPECT_NE(open.message.find("may be read by others"), std::string::npos) << open.message;
  EXPECT_EQ(open.hint, "chmod 600 " + file.string());
  std::filesystem::permissions(file, perms::owner_read | perms::owner_write);
  EXPECT_EQ(*read_keys({"env:SYSTOLE_KEYS_TEST", "", ""}).value()->encryption, key_of(9));
  EXPECT_EQ(*read_keys({"", "file:" + file.string(), ""}).value()->trusted, public_key_of(key_of(9)));
  std::ofstream(file) << "not hex\n";
  EXPECT_NE(to_string(read_keys({"file:" + file.string(), "", ""}).error()).find("not 64 hex digits"),
            std::string::npos);
  std::filesystem::remove(file);
  EXPECT_EQ(read_keys({"file:" + file.string(), "", ""}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_keys({"file:/dev/zero", "", ""}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(read_keys({"env:SYSTOLE_NO_SUCH_VARIABLE", "", ""}).error().kind, ErrorKind::not_found);
  EXPECT_EQ(read_keys({"0123", "", ""}).error().hint, "env:NAME or file:PATH");
  EXPECT_EQ(read_keys({"", "", "0123"}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(read_keys({}).value(), nullptr);
  unsetenv("SYSTOLE_KEYS_TEST");
}

}  // namespace
}  // namespace systole::checkpoint
