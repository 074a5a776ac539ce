// Fuzzes the reader of classifier files: any bytes are read or refused. The checksum is put right
// for half of the inputs, so that the checks behind it are reached too.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/text_hash.h"
#include "policy/classifier/region_classifier_file.h"

namespace {

void parse_and_write_again(const std::string& bytes) {
  const auto file = memdecay::parse_classifier(bytes);
  if (!file.ok()) return;
  const auto again = memdecay::parse_classifier(memdecay::serialize_classifier(*file));
  if (!again.ok() || !(again->classifier.shape() == file->classifier.shape())) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  parse_and_write_again(bytes);
  const std::uint64_t sum = memdecay::text_hash(bytes);
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  parse_and_write_again(bytes);
  return 0;
}
