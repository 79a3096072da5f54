#include "execute/data/token_shard.h"

#include <algorithm>
#include <array>
#include <limits>

#include "execute/data/little_endian.h"

namespace systole {
namespace {

constexpr std::uint32_t kVersion = 1;
constexpr std::int64_t kHeaderBytes = 64, kTrailerBytes = 64;
constexpr auto kBlock = static_cast<std::int64_t>(kTokenBlockBytes);

Error damaged(const std::string& path, std::string why) {
  return error(ErrorKind::corrupt, "this token shard is damaged: {}", why)
      .at({path})
      .hinted("remove its folder and build the data again: `systole data build`");
}

std::int64_t blocks_in(std::int64_t bytes) { return (bytes + kBlock - 1) / kBlock; }

}  // namespace

Result<TokenShard> TokenShard::open(Store& store, const std::string& path, bool keep_documents) {
  TokenShard shard;
  shard.store_ = &store;
  shard.info_.path = path;
  const Bytes size = TRY(store.size(path));
  if (size.count() < 8) return damaged(path, fmt::format("it has {} bytes", size.count()));
  std::vector<std::byte> header(static_cast<std::size_t>(std::min(size.count(), kHeaderBytes)));
  TRY(store.read(path, 0, header));
  if (!holds(header, 0, "SYSTOKEN")) {
    return error(ErrorKind::corrupt, "not a token shard: it does not begin with SYSTOKEN")
        .at({path})
        .hinted("remove its folder and build the data again: `systole data build`");
  }
  if (size.count() < kHeaderBytes + kTrailerBytes) {
    return damaged(path, fmt::format("it has {} bytes, less than a header and a trailer", size.count()));
  }
  // Checks the version before the checksum, so that a newer format is reported as such, not as damage.
  if (const auto version = get<std::uint32_t>(header, 8); version > kVersion) {
    return error(ErrorKind::unsupported, "this token shard has version {}; this Systole reads up to version {}",
                 version, kVersion)
        .coded(ErrorCode::newer_version)
        .at({path})
        .hinted("use the Systole that wrote it or a newer one, or build the data again");
  }
  TRY(shard.read_index(header, keep_documents));
  shard.file_ = TRY(open_to_read(store, path));
  return shard;
}

Status TokenShard::read_index(std::span<const std::byte> header, bool keep_documents) {
  const std::string& path = info_.path;
  const std::int64_t size = TRY(store_->size(path)).count();
  if (get<std::uint64_t>(header, 56) != hash64(header.first(56))) return damaged(path, "its header's checksum differs");
  token_bytes_ = get<std::uint32_t>(header, 12);
  const auto vocabulary = get<std::uint32_t>(header, 16), eos = get<std::uint32_t>(header, 20);
  const bool sane = get<std::uint32_t>(header, 8) == kVersion && vocabulary > 0 && eos < vocabulary &&
                    vocabulary <= std::uint32_t{std::numeric_limits<std::int32_t>::max()} &&
                    token_bytes_ == (vocabulary <= 65536 ? 2 : 4);
  if (!sane) return damaged(path, "its header contradicts itself");
  about_ = {{get<std::uint64_t>(header, 24), get<std::uint64_t>(header, 32)},
            static_cast<std::int32_t>(vocabulary),
            static_cast<std::int32_t>(eos)};

  std::array<std::byte, kTrailerBytes> trailer;
  TRY(store_->read(path, size - kTrailerBytes, trailer));
  if (!holds(trailer, 56, "NEKOTSYS"))
    return damaged(path, "it does not end as a shard does; it was perhaps cut short");
  if (get<std::uint64_t>(trailer, 48) != hash64(std::span(trailer).first(48))) {
    return damaged(path, "its trailer's checksum differs");
  }
  const auto documents = get<std::uint64_t>(trailer, 0), tokens = get<std::uint64_t>(trailer, 8);
  const auto limit = static_cast<std::uint64_t>(size);  // a document takes at least 16 bytes, a token 2
  if (documents > limit || tokens > limit) return damaged(path, "its trailer counts more than the file can hold");
  info_.documents = static_cast<std::int64_t>(documents);
  info_.tokens = static_cast<std::int64_t>(tokens);
  info_.bytes = static_cast<std::int64_t>(get<std::uint64_t>(trailer, 16));
  const std::int64_t token_section = (info_.tokens * token_bytes_ + 7) / 8 * 8;
  const std::int64_t index_at = kHeaderBytes + token_section;
  const std::int64_t numbers = 2 * info_.documents + blocks_in(token_section);
  if (get<std::uint64_t>(trailer, 24) != static_cast<std::uint64_t>(index_at) ||
      size != index_at + 8 * numbers + kTrailerBytes) {
    return damaged(path, fmt::format("it has {} bytes, which its counts do not explain", with_commas(size)));
  }

  documents_.resize(static_cast<std::size_t>(numbers));
  const auto index = std::as_writable_bytes(std::span(documents_));
  TRY(store_->read(path, index_at, index));
  if (get<std::uint64_t>(trailer, 32) != hash64(index)) return damaged(path, "its index's checksum differs");
  info_.id = Hasher().add(header).add(index).add(trailer).digest();
  blocks_.assign(documents_.begin() + 2 * info_.documents, documents_.end());
  documents_.resize(static_cast<std::size_t>(2 * info_.documents));

  std::uint64_t end = 0, bytes = 0;
  for (std::size_t i = 0; i < documents_.size(); i += 2) {
    if (documents_[i] <= end || documents_[i] > tokens) return damaged(path, "its index does not ascend");
    if (documents_[i + 1] > std::uint64_t{std::numeric_limits<std::int64_t>::max()} - bytes) {
      return damaged(path, "its index counts too many bytes");
    }
    end = documents_[i];
    bytes += documents_[i + 1];
  }
  if (end != tokens || bytes != get<std::uint64_t>(trailer, 16)) {
    return damaged(path, "its index does not add up to its trailer");
  }
  if (!keep_documents) documents_ = {};
  documents_.shrink_to_fit();
  return Done{};
}

Status TokenShard::read_block(std::int64_t block, std::span<std::byte> into) const {
  TRY(file_->read(kHeaderBytes + block * kBlock, into));
  if (hash64(into) == blocks_[static_cast<std::size_t>(block)]) return Done{};
  const std::int64_t first = kHeaderBytes + block * kBlock;
  return damaged(info_.path, fmt::format("the checksum of bytes {} to {} differs", with_commas(first),
                                         with_commas(first + static_cast<std::int64_t>(into.size()) - 1)));
}

Status TokenShard::read(std::int64_t begin, std::span<std::int32_t> into, std::span<std::byte> scratch) const {
  const auto count = static_cast<std::int64_t>(into.size());
  CHECK(begin >= 0 && count <= info_.tokens - begin && scratch.size() >= kTokenBlockBytes, "tokens {} to {} of {}",
        begin, begin + count, info_.tokens);
  const std::int64_t per_block = kBlock / token_bytes_;
  const std::int64_t section = (info_.tokens * token_bytes_ + 7) / 8 * 8;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t token = begin + done, block = token / per_block, inside = token % per_block;
    const auto size = static_cast<std::size_t>(std::min(kBlock, section - block * kBlock));
    TRY(read_block(block, scratch.first(size)));
    const std::int64_t taken = std::min(count - done, per_block - inside);
    for (std::int64_t i = 0; i < taken; ++i) {
      const auto at = static_cast<std::size_t>((inside + i) * token_bytes_);
      const std::uint32_t id = token_bytes_ == 2 ? get<std::uint16_t>(scratch, at) : get<std::uint32_t>(scratch, at);
      into[static_cast<std::size_t>(done + i)] = static_cast<std::int32_t>(id);
    }
    done += taken;
  }
  return Done{};
}

Status TokenShard::verify() const {
  CHECK(static_cast<std::int64_t>(documents_.size()) == 2 * info_.documents, "verify without the documents' index");
  std::vector<std::byte> scratch(kTokenBlockBytes);
  std::vector<std::int32_t> tokens(kTokenBlockBytes / static_cast<std::size_t>(token_bytes_));
  std::int64_t document = 0;
  for (std::int64_t begin = 0; begin < info_.tokens;) {
    const auto count = std::min(static_cast<std::int64_t>(tokens.size()), info_.tokens - begin);
    TRY(read(begin, std::span(tokens).first(static_cast<std::size_t>(count)), scratch));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t token = tokens[static_cast<std::size_t>(i)];
      const bool last = begin + i + 1 == document_end(document);
      if (token < 0 || token >= about_.vocabulary) {
        return damaged(info_.path, fmt::format("token {} is {}, outside the vocabulary of {}", with_commas(begin + i),
                                               token, about_.vocabulary));
      }
      if ((token == about_.eos) != last) {
        return damaged(info_.path, fmt::format("document {} and its end-of-document token disagree", document));
      }
      document += last ? 1 : 0;
    }
    begin += count;
  }
  return Done{};
}

Bytes TokenShard::resident() const {
  return Bytes(static_cast<std::int64_t>((documents_.capacity() + blocks_.capacity()) * sizeof(std::uint64_t)));
}

}  // namespace systole
