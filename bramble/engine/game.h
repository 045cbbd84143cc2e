/* What every part of the engine shares: the names of things, the layout of a world, and who offers which function.
 *
 * Numbers of treasures, sounds, room flags and metatiles are those that a reader written for Oracle of Seasons
 * expects; see shared/game/ram/ram.tsv for the variables themselves.
 */
#pragma once
#include "ram.h"

#include "art.h"

#define IO(low) (*(volatile u8 *)(0xFF00 + (low)))
enum {
    IO_PAD = 0x00,
    IO_INTERRUPTS_SEEN = 0x0F,
    IO_SOUND_POWER = 0x26,
    IO_LCD = 0x40,
    IO_LCD_STATUS = 0x41,
    IO_SCROLL_Y = 0x42,
    IO_SCROLL_X = 0x43,
    IO_LINE_COMPARE = 0x45,
    IO_WINDOW_Y = 0x4A,
    IO_WINDOW_X = 0x4B,
    IO_VRAM_BANK = 0x4F,
    IO_BG_COLOUR_INDEX = 0x68,
    IO_BG_COLOUR = 0x69,
    IO_SPRITE_COLOUR_INDEX = 0x6A,
    IO_SPRITE_COLOUR = 0x6B,
    IO_WRAM_BANK = 0x70,
    IO_DIALOG_LINE = 0x8D, /* ours, in high RAM: first line of the dialog window, 0 none */
    IO_WINDOW_FULL = 0x8F, /* ours: nonzero while a menu covers the screen */
    IO_INTERRUPTS = 0xFF
};

enum { KEY_A = 1, KEY_B = 2, KEY_SELECT = 4, KEY_START = 8, KEY_RIGHT = 16, KEY_LEFT = 32, KEY_UP = 64, KEY_DOWN = 128 };
enum { UP, RIGHT, DOWN, LEFT, NOWHERE = 255 };

/* Flags of a room, kept for good. Bits 0-3: door or wall opened, up, right, down, left. */
enum { ROOM_VISITED = 0x10, ROOM_ITEM = 0x20, ROOM_SECOND_ITEM = 0x40, ROOM_SOLVED = 0x80 };

enum {
    T_BOMBS = 0x03,
    T_SWORD = 0x05,
    T_ROD = 0x07,
    T_BRACELET = 0x16,
    T_FEATHER = 0x17,
    T_RUPEES = 0x28,
    T_HEART = 0x29,
    T_HEART_CONTAINER = 0x2A,
    T_HEART_PIECE = 0x2B,
    T_FLIPPERS = 0x2E,
    T_SMALL_KEY = 0x30,
    T_BOSS_KEY = 0x31,
    T_COMPASS = 0x32,
    T_MAP = 0x33,
    T_ESSENCE = 0x40,
    T_TRADE = 0x41
};

/* No sound is made: the number goes into sound_queue, which is the log of events. */
enum {
    SOUND_ESSENCE = 0x10,
    SOUND_ITEM = 0x4C,
    SOUND_SOLVED = 0x4D,
    SOUND_HIT = 0x4E,
    SOUND_MENU_OPEN = 0x54,
    SOUND_MENU_CLOSE = 0x55,
    SOUND_HEART = 0x57,
    SOUND_FALL = 0x59,
    SOUND_ERROR = 0x5A,
    SOUND_MINOR_ITEM = 0x5E,
    SOUND_HURT = 0x5F,
    SOUND_RUPEE = 0x61,
    SOUND_BOSS_HIT = 0x63,
    SOUND_DIE = 0x64,
    SOUND_LETTER = 0x66,
    SOUND_BOSS_DIES = 0x67,
    SOUND_UNLOCK = 0x6C,
    SOUND_CUT = 0x6D,
    SOUND_STAIRS = 0x6E,
    SOUND_EXPLOSION = 0x6F,
    SOUND_DOOR = 0x70,
    SOUND_PUSH = 0x71,
    SOUND_KILL = 0x73,
    SOUND_SWORD = 0x74,
    SOUND_DROP = 0x77,
    SOUND_SPLASH = 0x87,
    SOUND_TEXT_NEXT = 0x89
};

/* States of the hero object. */
enum { HERO_NORMAL = 1, HERO_FALLING = 2, HERO_DYING = 3, HERO_ITEM = 4 };

/* Kinds of object slots. */
enum {
    ENEMY_WALKER = 0x09,
    ENEMY_SPITTER = 0x0C,
    ENEMY_CHARGER = 0x10,
    ENEMY_BAT = 0x32,
    ENEMY_BOSS = 0x78,
    PERSON = 0x31,
    TREASURE = 0x60,
    ESSENCE = 0x7F,
    PART_DROP = 0x01,
    PART_PUFF = 0x02,
    PART_SHOT = 0x18,
    PART_BOMB = 0x3F,
    ITEM_BOMB = 0x03,
    ITEM_CARRIED = 0x16,
    BLOCK_SLIDING = 0x14
};
enum { DROP_HEART = 1, DROP_RUPEE = 2, DROP_FIVE = 3, DROP_BOMBS = 4 };

/* What can be done to a metatile. The table of metatiles is data of the world. */
enum { ACT_NONE, ACT_CUT, ACT_LIFT, ACT_BOMB, ACT_KEY, ACT_BOSS_KEY, ACT_SHUTTER, ACT_PUSH, ACT_BUTTON, ACT_HEAVY, ACT_STUMP, ACT_CHEST };
/* Kind of ground, as the environment reads it in active_tile_type. */
enum { GROUND_PLAIN = 0, GROUND_HOLE = 1, GROUND_STAIRS = 6, GROUND_WATER = 7 };
enum { SOLID_FULL = 0x0F, SOLID_HAZARD = 0x10, SOLID_BORDER = 0xFF };

/* ---- the world: data joined to the engine by Python, no compiler ---- */
typedef struct {
    u8 group, room;
    const u8 *data; /* theme and solve byte, 80 metatiles packed by pairs, records, 0 */
} RoomEntry;

typedef struct {
    u8 magic[4];
    const RoomEntry *rooms; /* ends with group FF */
    const u8 *const *texts;
    const u8 *tile_of_id;  /* 256: metatile id -> number in the tables below */
    const u8 *tile_id;     /* number -> metatile id */
    const u8 *tile_gfx;    /* number -> picture */
    const u8 *tile_attr;   /* number -> palette and tile bank */
    const u8 *tile_solid;  /* number -> solid quarters, 10 hazard */
    const u8 *tile_ground; /* number -> GROUND_* */
    const u8 *tile_act;    /* number -> ACT_* */
    const u8 *tile_becomes; /* number -> number after it was cut, lifted, opened */
    const u8 *tile_pairs;   /* numbers of metatiles from 96 on stand for two others each */
    const u8 *text_pairs;   /* letters 128 and more stand for two letters each */
    const u8 *pictures_low; /* packed: the first 32 pictures of metatiles, 64 bytes each */
    const u8 *pictures_high; /* packed: the others */
    const u8 *font;         /* packed */
    const u8 *sprites;      /* packed */
    const u8 *themes;         /* 64 bytes of palettes per theme */
    const u8 *sprite_palettes; /* 64 bytes */
    u8 start_group, start_room, start_pos, start_direction, start_season, start_health;
    u8 difficulty; /* 0 harmless, 1 normal, 2 harsh */
    u8 seed_1, seed_2;
    u8 torn; /* debug: update during VBlank, so that a reader sees half-updated RAM */
} World;
/* The last 128 bytes of the ROM. */
#define WORLD ((const World *)0x7F80)

/* Records of a room, after its tiles. */
enum {
    REC_END,
    REC_PERSON,   /* pos, look, script */
    REC_ENEMY,    /* pos, kind */
    REC_TREASURE, /* pos, treasure, flag (| HIDDEN), script */
    REC_CHEST,    /* pos, flag (| HIDDEN), script */
    REC_SIGN,     /* pos, script: something on a solid tile that answers to A */
    REC_WARP,     /* pos, group, room, pos, direction */
    REC_SEASON,   /* season mask, n, n times (pos, tile number) */
    REC_IF,       /* condition, argument: the next record counts only if it holds */
    REC_ENTER     /* script, run when the hero comes in */
};
enum { REC_HIDDEN = 0x01 };
enum { SOLVE_NEVER, SOLVE_CLEARED, SOLVE_PRESSED };

typedef struct {
    u8 pos;
    u8 flag;
    const u8 *script;
} Spot; /* something on a tile that answers to A: sign, chest */

typedef struct {
    u8 pos, group, room, dest, direction;
} Warp;

/* ---- shared between the parts ---- */
#define hero (*(Object *)0xD000)
#define weapon (*(Object *)0xD600)
#define bomb (*(Object *)0xD700)
#define carried (*(Object *)0xDC00)
#define sliding (*(Object *)0xD140)
#define person_slot(i) ((Object *)(0xD240 + ((u16)(i) << 8)))
#define enemy_slot(i) ((Object *)(0xD080 + ((u16)(i) << 8)))
#define part_slot(i) ((Object *)(0xD0C0 + ((u16)(i) << 8)))
enum { PEOPLE = 10, ENEMIES = 8, PARTS = 12, SPOTS = 6, WARPS = 4 };

extern const i8 step_x[4], step_y[4];
extern u8 hud_stale;        /* the status bar must be drawn again */
extern u8 shown_treasure;   /* item the hero holds up, 0 none */
extern u8 camera_column, camera_row, scroll_x, scroll_y;
extern u8 sword_timer;

/* video.c: pictures to the screen */
void video_start(void);
void frame_end(void);
void queue_head(u16 address, u8 flags, u8 count);
void queue_byte(u8 value);
void queue_end(void);
u8 queue_full(void);
void draw_cell(u8 pos);
void draw_column(u8 column);
void draw_row(u8 row);
void draw_room(void);
void palette_theme(void);
void palette_white(void);

/* sprites.c: objects to the sprite table */
void draw_sprites(void);

/* hud.c: status bar and item menu */
void hud_draw(void);
void menu_open(void);
void menu_update(void);

/* text.c: the dialog box */
void text_open(u8 id, u8 choice);
void text_update(void);

/* script.c: what people, signs, chests and rooms say and do */
void script_start(const u8 *code);
void script_run(void);
u8 script_busy(void);
u8 condition_holds(u8 condition, u8 argument);

/* bag.c: what the hero owns */
u8 owns(u8 treasure);
void give(u8 treasure, u8 amount);
void take(u8 treasure);
void bcd_add(u8 *low, u8 amount);
u8 bcd_at_least(const u8 *low, u8 high_digits, u8 low_digits);
void bcd_subtract(u8 *low, u8 digits);

/* rooms.c: loading rooms, crossing edges, warps */
u8 *room_flags(void);
const u8 *room_find(u8 group, u8 room);
void room_enter(u8 group, u8 room, u8 pos, u8 direction);
void room_reload(void);
void cross_start(u8 direction);
void cross_update(void);
void room_update(void);
void room_solve(void);
void open_door(u8 pos);
void tile_set(u8 pos, u8 number);
void tile_change(u8 pos);
u8 tile_at(u8 pos);
u8 warp_check(u8 pos);
Spot *spot_find(u8 pos);

/* hero.c: walking, falling, dying */
void hero_place(u8 pos, u8 direction);
void hero_update(void);
void hero_hurt(u8 quarters, u8 direction);
u8 pos_ahead(void);

/* items.c: sword, bombs, feather, bracelet, rod */
void use_item(u8 item);
u8 lift(u8 pos);
void throw_carried(void);
void items_update(void);
void push_block(u8 pos, u8 direction);

/* objects.c: slots, drops, treasures, puffs */
Object *object_spawn(Object *slot, u8 id, u8 pos);
Object *part_spawn(u8 id, u8 subid, u8 x, u8 y);
u8 is_near(const Object *object, u8 x, u8 y, u8 distance);
u8 is_solid(u8 x, u8 y);
void parts_update(void);
void people_update(void);
u8 person_talk(u8 pos);

/* enemies.c */
void enemy_spawn(u8 slot, u8 kind, u8 pos);
void enemies_update(void);

/* main.c */
u8 random(void);
void sound(u8 id);

/* start.s */
void wait_vblank(void);
void wait_line(void);
void oam_dma(void);
void vram_flush(void);
u8 read_pad(void);
