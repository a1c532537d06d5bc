/* The tile instructions of AMX, for machines without them: a test tool.

   `install` sets a handler for SIGILL, which the processor raises for an instruction it does not know.  The handler
   reads the instruction at the fault, does to memory and to its own tile registers (eight for each thread) what the
   manual says, and lets the program go on behind it.  Any other unknown instruction, a tile that the configuration
   does not have and a shape that does not fit end the process, as on a real machine. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

typedef struct { uint8_t bytes[16][64]; } Tile;
typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
} Config;

static __thread Tile tiles[8];
static __thread Config config;
static struct sigaction previous;
static long executed;

/* --- operands ------------------------------------------------------------------------------------------------ */

static const int REGISTER[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

typedef struct {
  const uint8_t *end;   /* of the instruction */
  uint8_t opcode, prefix, source;
  uint8_t mod, reg, rm; /* rm names a tile where mod is 3 */
  uint8_t *address;
  int64_t stride;
} Instruction;

static int64_t general(const ucontext_t *context, int number) { return context->uc_mcontext.gregs[REGISTER[number]]; }

static const uint8_t *read_address(Instruction *found, const uint8_t *at, const ucontext_t *context, int x, int b) {
  int64_t base, index = 0, displacement = 0;
  int scale = 0, name = found->rm, relative = 0;
  if (found->rm == 4) {
    uint8_t sib = *at++;
    int index_name = (sib >> 3 & 7) | x << 3;
    name = sib & 7;
    scale = sib >> 6;
    if (index_name != 4) index = general(context, index_name);
  }
  relative = found->mod == 0 && name == 5;
  base = relative ? 0 : general(context, name | b << 3);
  if (found->mod == 1) displacement = (int8_t)*at, at += 1;
  if (found->mod == 2 || relative) {
    int32_t wide;
    memcpy(&wide, at, 4);
    displacement = wide, at += 4;
  }
  if (relative && found->rm == 5) base = (int64_t)at;
  found->stride = index << scale;
  found->address = (uint8_t *)(base + displacement);
  return at;
}

/* Read a VEX instruction of three prefix bytes from the map 0F38; 0 where it is something else. */
static int decode(Instruction *found, const ucontext_t *context) {
  const uint8_t *at = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
  if (at[0] != 0xC4 || (at[1] & 0x1F) != 2 || (at[2] & 0x84) != 0) return 0;
  found->prefix = at[2] & 3;
  found->source = ~at[2] >> 3 & 15;
  found->opcode = at[3];
  found->mod = at[4] >> 6, found->reg = at[4] >> 3 & 7, found->rm = at[4] & 7;
  int x = !(at[1] & 0x40), b = !(at[1] & 0x20);
  found->end = found->mod == 3 ? at + 5 : read_address(found, at + 5, context, x, b);
  return 1;
}

/* --- instructions -------------------------------------------------------------------------------------------- */

enum { NONE, P66, PF3, PF2 };

static int configured(int tile) { return config.palette == 1 && config.rows[tile] && config.row_bytes[tile]; }

static float without_subnormals(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if (!(bits & 0x7F800000)) bits &= 0x80000000;
  memcpy(&x, &bits, 4);
  return x;
}

static float from_bfloat16(const uint8_t *at) {
  uint32_t bits = (uint32_t)(at[0] | at[1] << 8) << 16;
  float x;
  memcpy(&x, &bits, 4);
  return without_subnormals(x);
}

static float fused(float x, float y, float z) { return without_subnormals(__builtin_fmaf(x, y, z)); }

static float from_half(const uint8_t *at) {
  _Float16 x;
  memcpy(&x, at, 2);
  return x;
}

/* Two chains of multiply-adds, for even and for odd positions, whose sum is added to the result. */
static int multiply_pairs(int to, int left, int right, float (*element)(const uint8_t *)) {
  for (int m = 0; m < config.rows[to]; m++)
    for (int n = 0; n < config.row_bytes[to] / 4; n++) {
      float even = 0, odd = 0, *sum = (float *)tiles[to].bytes[m] + n;
      for (int k = 0; k < config.row_bytes[left] / 4; k++) {
        const uint8_t *x = tiles[left].bytes[m] + 4 * k, *y = tiles[right].bytes[k] + 4 * n;
        even = fused(element(x), element(y), even);
        odd = fused(element(x + 2), element(y + 2), odd);
      }
      *sum = without_subnormals(without_subnormals(*sum) + without_subnormals(even + odd));
    }
  return 1;
}

static int multiply_bytes(int to, int left, int right, int left_signed, int right_signed) {
  for (int m = 0; m < config.rows[to]; m++)
    for (int n = 0; n < config.row_bytes[to] / 4; n++)
      for (int k = 0; k < config.row_bytes[left]; k++) {
        uint8_t x = tiles[left].bytes[m][k], y = tiles[right].bytes[k / 4][4 * n + k % 4];
        int product = (left_signed ? (int8_t)x : x) * (right_signed ? (int8_t)y : y);
        ((uint32_t *)tiles[to].bytes[m])[n] += product;
      }
  return 1;
}

static int multiply(const Instruction *found) {
  int to = found->reg, left = found->rm, right = found->source;
  if (found->mod != 3 || right > 7 || !configured(to) || !configured(left) || !configured(right)) return 0;
  if (to == left || to == right || left == right || config.rows[left] != config.rows[to]) return 0;
  if (config.row_bytes[right] != config.row_bytes[to] || config.rows[right] != config.row_bytes[left] / 4) return 0;
  if (found->opcode == 0x5C && found->prefix == PF3) return multiply_pairs(to, left, right, from_bfloat16);
  if (found->opcode == 0x5C && found->prefix == PF2) return multiply_pairs(to, left, right, from_half);
  if (found->opcode != 0x5E) return 0;
  int left_signed = found->prefix == PF2 || found->prefix == PF3;
  int right_signed = found->prefix == PF2 || found->prefix == P66;
  return multiply_bytes(to, left, right, left_signed, right_signed);
}

static int move_tile(const Instruction *found) {
  if (!configured(found->reg) || found->mod == 3) return 0;
  int size = config.row_bytes[found->reg], rows = config.rows[found->reg];
  if (found->prefix != PF3) memset(&tiles[found->reg], 0, sizeof(Tile));
  for (int row = 0; row < rows; row++) {
    uint8_t *memory = found->address + row * found->stride, *own = tiles[found->reg].bytes[row];
    if (found->prefix == PF3) memcpy(memory, own, size);
    else memcpy(own, memory, size);
  }
  return 1;
}

static int configure(const Instruction *found) {
  if (found->prefix == PF2 && found->mod == 3) {  /* tilezero */
    if (!configured(found->reg)) return 0;
    memset(&tiles[found->reg], 0, sizeof(Tile));
  } else if (found->prefix == NONE && found->mod == 3) {  /* tilerelease */
    memset(&config, 0, sizeof config);
    memset(tiles, 0, sizeof tiles);
  } else if (found->prefix == NONE) {  /* ldtilecfg */
    memcpy(&config, found->address, sizeof config);
    memset(tiles, 0, sizeof tiles);
    for (int tile = 0; tile < 16; tile++)
      if (config.rows[tile] > 16 || config.row_bytes[tile] > 64 || (tile > 7 && config.rows[tile])) return 0;
  } else {
    return 0;
  }
  return 1;
}

static void handle(int signal, siginfo_t *information, void *given) {
  ucontext_t *context = given;
  Instruction found = {0};
  int done = 0;
  if (decode(&found, context)) {
    if (found.opcode == 0x49) done = configure(&found);
    else if (found.opcode == 0x4B) done = move_tile(&found);
    else if (found.opcode == 0x5C || found.opcode == 0x5E) done = multiply(&found);
  }
  if (!done) {  /* the instruction faults again, and then as it would have without this */
    sigaction(SIGILL, &previous, 0);
    return;
  }
  __atomic_add_fetch(&executed, 1, __ATOMIC_RELAXED);
  context->uc_mcontext.gregs[REG_RIP] = (greg_t)found.end;
}

int install(void) {
  struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
  return sigaction(SIGILL, &action, &previous);
}

void uninstall(void) { sigaction(SIGILL, &previous, 0); }

long count(void) { return executed; }

/* Whether a thread left a kernel with tiles configured. */
int is_configured(void) { return config.palette != 0; }
