// Source: System V ABI, "Object Files" (ELF header, program headers); <elf.h>.

#include "ground/pjrt/shared_library.h"

#include <elf.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace systole::pjrt {
namespace {

#if defined(__x86_64__)
constexpr int kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_NONE;
#endif

template <typename T>
bool read_at(std::ifstream& file, std::uint64_t at, T* into, std::size_t count = 1) {
  file.seekg(static_cast<std::streamoff>(at));
  file.read(reinterpret_cast<char*>(into), static_cast<std::streamsize>(count * sizeof(T)));
  return static_cast<bool>(file);
}

}  // namespace

Status check_shared_library(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return error(ErrorKind::not_found, "there is no plugin at {}", path);
  if (!S_ISREG(info.st_mode)) return error(ErrorKind::invalid, "{} is no file", path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr))
    return error(ErrorKind::corrupt, "{} cannot be loaded: it is no shared library", path);
  if (header.e_machine != kMachine)
    return error(ErrorKind::corrupt, "{} cannot be loaded: it is for another kind of processor", path);
  std::vector<Elf64_Phdr> parts(header.e_phnum);  // 65,535 at most
  if (!read_at(file, header.e_phoff, parts.data(), parts.size()))
    return error(ErrorKind::corrupt, "{} cannot be loaded: it is cut off after {} bytes", path, size);
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type != PT_LOAD) continue;
    if (part.p_offset > size || part.p_filesz > size - part.p_offset)
      return error(ErrorKind::corrupt, "{} cannot be loaded: it is cut off after {} bytes of at least {}", path, size,
                   part.p_offset + part.p_filesz);
  }
  return {};
}

}  // namespace systole::pjrt
