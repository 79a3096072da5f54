#include <algorithm>

#include "execute/data/little_endian.h"
#include "execute/data/token_shard.h"

namespace systole {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{1} << 20;  // a multiple of a block

std::vector<std::byte> header_of(const ShardTokens& about) {
  std::vector<std::byte> header;
  put(header, std::string_view("SYSTOKEN"));
  put(header, std::uint32_t{1});
  put(header, std::uint32_t{about.vocabulary <= 65536 ? 2u : 4u});
  put(header, static_cast<std::uint32_t>(about.vocabulary));
  put(header, static_cast<std::uint32_t>(about.eos));
  put(header, about.tokenizer.high);
  put(header, about.tokenizer.low);
  put(header, std::uint64_t{0});
  put(header, std::uint64_t{0});
  put(header, hash64(header));
  return header;
}

}  // namespace

TokenShardWriter::TokenShardWriter(Store& store, std::string path, const ShardTokens& about)
    : store_(&store), about_(about), header_(header_of(about)) {
  info_.path = std::move(path);
}
TokenShardWriter::~TokenShardWriter() = default;
TokenShardWriter::TokenShardWriter(TokenShardWriter&&) noexcept = default;

Result<TokenShardWriter> TokenShardWriter::create(Store& store, std::string path, const ShardTokens& about) {
  TokenShardWriter writer(store, std::move(path), about);
  writer.file_ = TRY(store.create(writer.info_.path + ".partial"));
  TRY(writer.file_->append(writer.header_));
  return writer;
}

Status TokenShardWriter::add(std::span<const std::int32_t> tokens, std::int64_t bytes) {
  CHECK(!tokens.empty() && tokens.back() == about_.eos, "a document of {} tokens does not end in eos", tokens.size());
  for (const std::int32_t token : tokens) {
    CHECK(token >= 0 && token < about_.vocabulary, "token {} of {}", token, about_.vocabulary);
    if (about_.vocabulary <= 65536) {
      put(pending_, static_cast<std::uint16_t>(token));
    } else {
      put(pending_, static_cast<std::uint32_t>(token));
    }
  }
  ++info_.documents;
  info_.tokens += static_cast<std::int64_t>(tokens.size());
  info_.bytes += bytes;
  documents_.push_back(static_cast<std::uint64_t>(info_.tokens));
  documents_.push_back(static_cast<std::uint64_t>(bytes));
  return flush(false);
}

Status TokenShardWriter::flush(bool all) {
  if (!all && pending_.size() < kFlushBytes) return Done{};
  const std::size_t size = all ? pending_.size() : pending_.size() / kTokenBlockBytes * kTokenBlockBytes;
  const std::span<const std::byte> out(pending_.data(), size);
  for (std::size_t at = 0; at < size; at += kTokenBlockBytes) {
    blocks_.push_back(hash64(out.subspan(at, std::min(kTokenBlockBytes, size - at))));
  }
  TRY(file_->append(out));
  written_ += static_cast<std::int64_t>(size);
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(size));
  return Done{};
}

Result<ShardInfo> TokenShardWriter::finish() {
  while (pending_.size() % 8 != 0) pending_.push_back(std::byte{0});
  TRY(flush(true));
  std::vector<std::byte> index;
  for (const std::uint64_t number : documents_) put(index, number);
  for (const std::uint64_t number : blocks_) put(index, number);
  std::vector<std::byte> trailer;
  put(trailer, static_cast<std::uint64_t>(info_.documents));
  put(trailer, static_cast<std::uint64_t>(info_.tokens));
  put(trailer, static_cast<std::uint64_t>(info_.bytes));
  put(trailer, static_cast<std::uint64_t>(header_.size()) + static_cast<std::uint64_t>(written_));
  put(trailer, hash64(index));
  put(trailer, std::uint64_t{0});
  put(trailer, hash64(trailer));
  put(trailer, std::string_view("NEKOTSYS"));
  TRY(file_->append(index));
  TRY(file_->append(trailer));
  TRY(file_->sync());
  TRY(file_->close());
  TRY(store_->rename(info_.path + ".partial", info_.path));
  info_.id = Hasher().add(header_).add(index).add(trailer).digest();
  return info_;
}

}  // namespace systole
