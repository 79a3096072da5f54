#include "execute/data/formats/tar_samples.h"

#include <algorithm>

#include "ground/base/shown_text.h"

namespace systole {
namespace {

constexpr std::int64_t kMostExtension = 1 << 20;
constexpr std::size_t kMostMembers = 1000;

std::string as_shown(std::string_view name) { return printable(name.substr(0, 200)); }

// Whether the name, followed from a folder, stays in it.
bool stays_below(std::string_view name) {
  if (name.starts_with('/')) return false;
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part == "..") return false;
    name.remove_prefix(std::min(part.size() + 1, name.size()));
  }
  return true;
}

// Where the dot between key and field is; npos if the name has none.
std::size_t field_dot(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == name.npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  return dot == base ? name.npos : dot;
}

std::string_view key_of(std::string_view name) { return name.substr(0, field_dot(name)); }

const char* kind_of_type(char type) {
  switch (type) {
    case '1': return "a hard link";
    case '2': return "a symbolic link";
    case '3':
    case '4': return "a device";
    case '6': return "a pipe";
    default: return nullptr;
  }
}

}  // namespace

// Looks at the member at `at`: header_, member_begin_, data_at_, dot_.
Result<TarSamples::Found> TarSamples::next_member(std::int64_t at) {
  if (member_begin_ == at) return classify(at);  // looked at already, when the sample before ended
  member_begin_ = -1;
  const std::int64_t begin = at;
  PaxRecords pax;
  while (true) {
    const std::int64_t kept_from = std::min(keep_, at);
    const std::string_view kept = TRY(window_->bytes(kept_from, at + kTarBlock));
    const std::string_view block = kept.substr(std::min(kept.size(), static_cast<std::size_t>(at - kept_from)));
    if (block.size() < static_cast<std::size_t>(kTarBlock)) {
      return wrong(ErrorKind::corrupt, at,
                   block.empty() ? "truncated: the file ends without the two blocks of zeros that end a tar file"
                                 : "truncated: the file ends within the header of a member",
                   "make or fetch the file again: it lacks what came behind");
    }
    if (is_zero_block(block)) {
      if (at != begin) return wrong(ErrorKind::corrupt, at, "the file ends behind an extended header");
      if (keep_ >= at) TRY(check_end(at));  // otherwise a sample's bytes are in the window, and the next call checks it
      return Found::end;
    }
    if (Status parsed = parse_tar_header(block, header_); !parsed.ok()) {
      Error bad = at_record(std::move(parsed).error(), {shown_, record_, at});
      if (at == 0) bad.kind = ErrorKind::invalid, bad.hint = "this is no tar file; compressed ones end in .gz or .zst";
      return bad;
    }
    at += kTarBlock;
    const char type = header_.type;
    if (type != 'x' && type != 'g' && type != 'L' && type != 'K') break;
    if (header_.size > kMostExtension)
      return wrong(ErrorKind::corrupt, at - kTarBlock, "an extended header of more than 1 MiB");
    const std::int64_t from = std::min(keep_, at);
    const std::string_view whole = TRY(window_->bytes(from, at + header_.size));
    const std::string_view data = whole.substr(static_cast<std::size_t>(at - from));
    if (static_cast<std::int64_t>(data.size()) < header_.size)
      return wrong(ErrorKind::corrupt, at, "truncated: the file ends within an extended header");
    if (type == 'L') pax.name = data.substr(0, data.find('\0'));
    if (type == 'x' || type == 'g') {
      Result<PaxRecords> records = parse_pax(data);
      if (!records.ok()) return at_record(std::move(records).error(), {shown_, record_, at});
      if (type == 'g' && (!records->name.empty() || records->size >= 0))
        return wrong(ErrorKind::unsupported, at, "a global pax header that names all members alike");
      if (!records->name.empty()) pax.name = std::move(records->name);
      if (records->size >= 0) pax.size = records->size;
    }
    at += padded_to_block(header_.size);
  }
  if (!pax.name.empty()) header_.name = std::move(pax.name);
  if (pax.size >= 0) header_.size = pax.size;
  if (header_.type == '5') header_.size = 0;
  member_begin_ = begin;
  data_at_ = at;
  return classify(begin);
}

// Whether the member looked at is one of a sample.
Result<TarSamples::Found> TarSamples::classify(std::int64_t begin) {
  const std::string& name = header_.name;
  const std::int64_t after = data_at_ + padded_to_block(header_.size);
  const char type = header_.type;
  const auto refuse = [&](ErrorKind kind, std::string what, std::string hint) {
    resumes_at_ = after;
    member_begin_ = -1;
    return wrong(kind, begin, what, std::move(hint));
  };
  if (const char* what = kind_of_type(type))
    return refuse(ErrorKind::invalid, fmt::format("'{}' is {}, and a sample is made of files", as_shown(name), what),
                  "make the tar with --dereference (-h)");
  if (type != '0' && type != '\0' && type != '7' && type != '5')
    return refuse(ErrorKind::unsupported,
                  fmt::format("'{}' is a member of type '{}'", as_shown(name), as_shown(std::string_view(&type, 1))),
                  type == 'S' ? "make the tar without --sparse (-S)" : "tar --format=pax makes plain members");
  if (!stays_below(name))
    return refuse(ErrorKind::invalid, fmt::format("the name '{}' leads out of the folder", as_shown(name)),
                  "make the tar from within the folder: tar -C FOLDER -cf FILE .");
  dot_ = field_dot(name);
  const bool file = type != '5' && !name.ends_with('/') && dot_ != name.npos;
  return file ? Found::member : Found::skipped;
}

// Nothing but zeros may follow: a second archive behind the first would be lost without a word.
Status TarSamples::check_end(std::int64_t at) {
  constexpr std::int64_t kStep = 64 << 10;
  while (true) {
    const std::string_view rest = TRY(window_->bytes(at, at + kStep));
    if (rest.empty()) return Done{};
    const std::size_t other = rest.find_first_not_of('\0');
    if (other != rest.npos)
      return wrong(ErrorKind::corrupt, at + static_cast<std::int64_t>(other),
                   "something follows the end of the archive, perhaps another one",
                   "join archives with tar --concatenate, not cat");
    at += static_cast<std::int64_t>(rest.size());
  }
}

// The sample with the member looked at, which may be one that is skipped amid it.
Status TarSamples::check_size(const TarSample& sample) {
  const std::int64_t bytes = data_at_ + header_.size - sample.begin;
  if (bytes <= largest_ && sample.count < kMostMembers) return Done{};
  resumes_at_ = data_at_ + padded_to_block(header_.size);
  return wrong(ErrorKind::invalid, member_begin_,
               fmt::format("with '{}' the sample has {} bytes in {} files, and at most {} in {} are read",
                           as_shown(header_.name), with_commas(bytes), with_commas(sample.count + 1),
                           with_commas(largest_), with_commas(kMostMembers)),
               "raise largest_document, or give each sample a name of its own up to the first dot");
}

Status TarSamples::add_member(TarSample& sample, bool headers_only) {
  const std::int64_t end = data_at_ + header_.size;
  TRY(check_size(sample));
  if (sample.count == sample.members.size()) sample.members.emplace_back();
  TarSample::Member& member = sample.members[sample.count];
  member.field.assign(header_.name, dot_ + 1);
  for (char& c : member.field)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  for (std::size_t i = 0; i < sample.count; ++i) {
    if (sample.members[i].field != member.field) continue;
    resumes_at_ = data_at_ + padded_to_block(header_.size);
    return wrong(ErrorKind::invalid, member_begin_,
                 fmt::format("the sample '{}' has two members '{}'", as_shown(sample.key), as_shown(member.field)));
  }
  member.at = data_at_;
  member.size = header_.size;
  if (!headers_only) {
    const std::string_view all = TRY(window_->bytes(sample.begin, end));
    if (static_cast<std::int64_t>(all.size()) < end - sample.begin) {
      return wrong(ErrorKind::corrupt, data_at_,
                   fmt::format("truncated: '{}' has {} bytes, and the file ends after {} of them",
                               as_shown(header_.name), with_commas(header_.size),
                               with_commas(sample.begin + static_cast<std::int64_t>(all.size()) - data_at_)),
                   "make or fetch the file again");
    }
  }
  ++sample.count;
  return Done{};
}

Result<bool> TarSamples::read(std::int64_t at, std::int64_t record, TarSample& sample, bool headers_only) {
  if (at != resumes_at_) refused_.clear();
  resumes_at_ = -1;
  Result<bool> more = gather(at, record, sample, headers_only);
  refused_.clear();
  if (more.ok() || resumes_at_ < 0) return more;
  if (sample.count > 0)
    refused_ = sample.key;
  else if (field_dot(header_.name) != std::string_view::npos)
    refused_ = key_of(header_.name);
  return more;
}

// Whether the member looked at is one more of the sample that was refused.
bool TarSamples::is_of_refused() const {
  return !refused_.empty() && field_dot(header_.name) != std::string_view::npos && key_of(header_.name) == refused_;
}

Result<bool> TarSamples::gather(std::int64_t at, std::int64_t record, TarSample& sample, bool headers_only) {
  record_ = record;
  keep_ = at;
  sample.count = 0;
  while (true) {
    const Result<Found> looked = next_member(at);
    if (!looked.ok()) {
      if (sample.count == 0 && resumes_at_ >= 0 && is_of_refused()) {
        keep_ = at = resumes_at_;
        resumes_at_ = -1;
        continue;
      }
      const bool behind = sample.count > 0 && resumes_at_ >= 0 && key_of(header_.name) != sample.key;
      if (!behind) return looked.error();
      resumes_at_ = -1;  // the sample is whole; the next call meets what is refused
      sample.end = at;
      return true;
    }
    const bool of_refused = *looked == Found::member && sample.count == 0 && is_of_refused();
    const Found found = of_refused ? Found::skipped : *looked;
    if (*looked == Found::member && !of_refused) refused_.clear();
    if (found == Found::end) {
      sample.end = at;
      return sample.count > 0;
    }
    const std::int64_t after = data_at_ + padded_to_block(header_.size);
    if (found == Found::member) {
      const std::string_view key = key_of(header_.name);
      if (sample.count == 0) {
        sample.key.assign(key);
        sample.begin = keep_ = at;
      } else if (sample.key != key) {
        sample.end = at;
        return true;
      }
      TRY(add_member(sample, headers_only));
    } else if (sample.count == 0) {
      keep_ = after;
    } else {
      TRY(check_size(sample));
    }
    if (headers_only) keep_ = after;
    at = after;
  }
}

}  // namespace systole
