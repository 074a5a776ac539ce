// gguf_make_seeds FOLDER: the fuzzer's seed corpus: small right files of every architecture, and
// the damaged ones.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "damaged_files.h"
#include "model/gguf/tiny_model_for_test.h"

namespace {

void write(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: gguf_make_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma3"})
    write(folder / architecture, memdecay::tiny_model(architecture).build());
  std::size_t number = 0;
  for (const auto& files : {memdecay::files_with_bad_metadata(), memdecay::files_with_bad_tensors(),
                            memdecay::files_with_a_lie()})
    for (const memdecay::DamagedFile& file : files)
      write(folder / ("damaged_" + std::to_string(number++)), file.bytes);
  std::printf("%zu damaged files and 4 right ones in %s\n", number, argv[1]);
  return 0;
}
