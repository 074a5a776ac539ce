# Writes OUTPUT, a C++ source that holds the bytes of INPUT as the array SYMBOL; see embed.cmake.
file(READ ${INPUT} hex HEX)
string(LENGTH "${hex}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," hex "${hex}")
file(WRITE ${OUTPUT} "#include <cstddef>
namespace memdecay {
extern const char ${SYMBOL}[];
extern const std::size_t ${SYMBOL}_bytes;
const char ${SYMBOL}[] = {
${hex}0};
const std::size_t ${SYMBOL}_bytes = ${bytes};
}  // namespace memdecay
")
