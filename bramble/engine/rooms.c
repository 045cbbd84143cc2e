/* Rooms: unpacking them from the world, walking over their edges, warps, doors and what opens them.
 *
 * A room is 10 x 8 metatiles of 16 x 16 pixels. Its cells are numbered row * 16 + column ("pos"), in room_layout
 * (which metatile) and room_collisions (what is solid). Neighbours differ by 1 or 16 in their number.
 */
#include "game.h"

enum { SCROLL_COLUMNS = 20, SCROLL_ROWS = 16, CELLS = 128, HEAD_TO_LOAD = 251, UPPER_HALF, LOWER_HALF, RECORDS_TO_LOAD, DOORS_TO_OPEN, SHUTTERS = 6, FIRST_PAIR = 96 };
enum { THEME_OUTDOORS, THEME_HOUSE, THEME_CAVE };
enum { FIRST_X = 6, LAST_X = 154, FIRST_Y = 6, LAST_Y = 121 };

u8 room_theme;
static u8 solve_by;      /* SOLVE_* */
static u8 button_bits;   /* a bit for each floor button and switch of the room */
static Spot spots[SPOTS];
static Warp warps[WARPS];
static u8 shutters[SHUTTERS];
static u8 shutter_count, spot_count, warp_count, person_count, enemy_count;
static u8 scroll_step;
static u8 pending[16]; /* second halves of pairs, while a room is unpacked */
static u8 pending_count, next_pos;
static const u8 *records; /* of the room being loaded */

static const u8 record_length[] = {0, 5, 3, 6, 5, 4, 6, 0, 3, 3};

u8 *room_flags(void) {
    if (!active_group) return room_flags_overworld + active_room;
    if (active_group < 4) return room_flags_subrosia_indoor + active_room;
    return (active_group == 4 ? room_flags_group4 : room_flags_group5) + active_room;
}

/* Data of a room, or 0 when the world has none there. */
const u8 *room_find(u8 group, u8 room) {
    const RoomEntry *entry = WORLD->rooms;
    for (; entry->group != 255; ++entry)
        if (entry->room == room && entry->group == group) return entry->data;
    return 0;
}

/* ---- cells ---- */

/* Number of the metatile at a cell in the tables of the world. */
u8 tile_at(u8 pos) { return WORLD->tile_of_id[room_layout[pos]]; }

static void tile_put(u8 pos, u8 number) {
    room_layout[pos] = WORLD->tile_id[number];
    room_collisions[pos] = WORLD->tile_solid[number];
}

void tile_set(u8 pos, u8 number) {
    tile_put(pos, number);
    changed_tile_head = (changed_tile_head + 1) & 31;
    changed_tile_tail = changed_tile_head;
    if (!queue_full()) draw_cell(pos);
}

/* Cut, lift, open: each metatile says what it becomes. */
void tile_change(u8 pos) { tile_set(pos, WORLD->tile_becomes[tile_at(pos)]); }

static u8 next_cell(u8 pos) {
    ++pos;
    return (pos & 15) == 10 ? pos + 6 : pos;
}

/* ---- loading ---- */

static void clear_objects(void) {
    u8 n;
    for (n = 0; n < 16; ++n) {
        enemy_slot(n)->enabled = 0;
        part_slot(n)->enabled = 0;
    }
    for (n = 0; n < 14; ++n) person_slot(n)->enabled = 0;
    for (n = 0; n < 32; ++n) talkable_list[n] = 0;
    bomb.enabled = carried.enabled = sliding.enabled = weapon.enabled = 0;
    link_grab_state = 0;
    sword_timer = 0;
}

static void clear_border(void) {
    u8 n;
    for (n = 0; n < 176; ++n) room_collisions[n] = SOLID_BORDER;
    for (n = 0; n < 16; ++n) room_collisions[0xF0 + n] = SOLID_BORDER;
    next_pos = pending_count = 0;
}

/* Half of the cells of a room, row by row. Numbers from FIRST_PAIR on stand for two others, as in texts. */
static void unpack_half(void) {
    u8 left, number, pos = next_pos;
    const u8 *pair;
    for (left = 40; left; --left) {
        number = pending_count ? pending[--pending_count] : *records++;
        while (number >= FIRST_PAIR) {
            pair = WORLD->tile_pairs + ((u16)(u8)(number - FIRST_PAIR) << 1);
            pending[pending_count++] = pair[1];
            number = pair[0];
        }
        tile_put(pos, number);
        pos = next_cell(pos);
    }
    next_pos = pos;
}

static void set_place(void) {
    u8 inside = room_theme > THEME_CAVE;
    active_collisions = room_theme == THEME_OUTDOORS ? 0 : room_theme == THEME_HOUSE ? 3 : 4;
    tileset_flags = room_theme == THEME_OUTDOORS ? 1 : room_theme == THEME_HOUSE ? 4 : inside ? 8 : 16;
    dungeon_index = 255;
    loading_room = active_room;
    if (inside) {
        dungeon_index = 1 + ((active_room >> 3) & 1) + ((active_room >> 6) & 2) + (active_group == 5 ? 4 : 0);
        dungeon_map_position = (active_room & 7) | ((active_room >> 1) & 0x38);
        minimap_dungeon_position = dungeon_map_position;
        dungeon_visited_floors[dungeon_index] = 1;
    }
    if (active_group < 3 || inside) {
        minimap_group = active_group;
        minimap_room = active_room;
    }
}

static void load_head(void) {
    const u8 *data = room_find(active_group, active_room);
    room_theme = data[0] & 15;
    solve_by = data[0] >> 4;
    set_place();
    records = data + 1;
    clear_border();
    open_shutters = active_triggers = last_opened_chest_pos = num_enemies = 0;
    button_bits = shutter_count = spot_count = warp_count = person_count = enemy_count = 0;
    link_pushing_direction = NOWHERE;
    push_counter = 20;
}

/* Flag bit of a door or wall that stays open: by the side of the room it stands on. */
static u8 door_bit(u8 pos) {
    u8 column = pos & 15;
    if (pos < 16) return 1;
    if (column == 9) return 2;
    if (pos >= 112) return 4;
    return column ? 1 : 8;
}

static void open_what_was_opened(void) {
    u8 pos, act, flags = *room_flags();
    for (pos = 0; pos < CELLS; pos = next_cell(pos)) {
        act = WORLD->tile_act[tile_at(pos)];
        if (act == ACT_SHUTTER) {
            if (flags & ROOM_SOLVED) tile_put(pos, WORLD->tile_becomes[tile_at(pos)]);
            else if (shutter_count < SHUTTERS) shutters[shutter_count++] = pos;
        } else if (act == ACT_BOMB || act == ACT_KEY || act == ACT_BOSS_KEY) {
            if (flags & door_bit(pos)) tile_put(pos, WORLD->tile_becomes[tile_at(pos)]);
        } else if (act == ACT_BUTTON || act == ACT_HEAVY) {
            button_bits = (button_bits << 1) | 1;
        }
    }
    *room_flags() |= ROOM_VISITED;
}

static const u8 *script_at(const u8 *where) { return (const u8 *)(where[0] | ((u16)where[1] << 8)); }

static Spot *add_spot(u8 pos, u8 flag, const u8 *script) {
    Spot *spot = spots + spot_count++;
    spot->pos = pos;
    spot->flag = flag;
    spot->script = script;
    return spot;
}

static void load_person(const u8 *record) {
    Object *person = object_spawn(person_slot(person_count), PERSON, record[1]);
    talkable_list[person_count << 1] = 0xD2 + person_count;
    talkable_list[(person_count << 1) + 1] = 0x40;
    person->subid = record[2];
    person->counter1 = record[3];
    person->counter2 = record[4];
    room_collisions[record[1]] = SOLID_FULL;
    ++person_count;
}

static void load_treasure(const u8 *record) {
    u8 flag = record[3] & ~REC_HIDDEN;
    Object *treasure;
    if (*room_flags() & flag) return;
    treasure = object_spawn(person_slot(person_count++), record[2] == T_ESSENCE ? ESSENCE : TREASURE, record[1]);
    treasure->treasure_id = record[2];
    treasure->subid = record[2];
    treasure->treasure_taken = flag;
    treasure->counter1 = record[4];
    treasure->counter2 = record[5];
    if ((record[3] & REC_HIDDEN) && !(*room_flags() & ROOM_SOLVED)) treasure->state = 0;
}

static void show_chest(u8 pos, u8 flag) { tile_put(pos, WORLD->tile_of_id[*room_flags() & flag ? TILE_CHEST_OPEN : TILE_CHEST]); }

static void load_chest(const u8 *record) {
    u8 hidden = (record[2] & REC_HIDDEN) && !(*room_flags() & ROOM_SOLVED);
    add_spot(record[1], record[2], script_at(record + 3));
    if (!hidden) show_chest(record[1], record[2] & ~REC_HIDDEN);
}

static void load_warp(const u8 *record) {
    Warp *warp = warps + warp_count++;
    warp->pos = record[1];
    warp->group = record[2];
    warp->room = record[3];
    warp->dest = record[4];
    warp->direction = record[5];
}

/* Cells that look different in some seasons. Returns the length of the record. */
static u8 load_season(const u8 *record) {
    u8 n = record[2], now = record[1] & (1 << season);
    const u8 *cell = record + 3;
    for (; n; --n, cell += 2)
        if (now) tile_put(cell[0], cell[1]);
    return 3 + (record[2] << 1);
}

static void load_enemy(const u8 *record) {
    if (record[2] == ENEMY_BOSS && (*room_flags() & ROOM_SOLVED)) return;
    enemy_spawn(enemy_count++, record[2], record[1]);
}

static void load_record(const u8 *record) {
    switch (record[0]) {
    case REC_PERSON:
        load_person(record);
        break;
    case REC_ENEMY:
        load_enemy(record);
        break;
    case REC_TREASURE:
        load_treasure(record);
        break;
    case REC_CHEST:
        load_chest(record);
        break;
    case REC_SIGN:
        add_spot(record[1], 0, script_at(record + 2));
        break;
    case REC_WARP:
        load_warp(record);
        break;
    case REC_ENTER:
        script_start(script_at(record + 1));
        break;
    }
}

static void load_records(void) {
    u8 skip = 0;
    const u8 *record = records;
    while (*record) {
        if (*record == REC_SEASON) {
            record += load_season(record);
            continue;
        }
        if (*record == REC_IF) {
            if (!condition_holds(record[1], record[2])) skip = 1;
        } else {
            if (!skip) load_record(record);
            skip = 0;
        }
        record += record_length[*record];
    }
}

/* ---- getting into a room ---- */

static void load_dungeon_grid(void) {
    u8 n, first = active_room & 0x88, room;
    if (dungeon_index == 255) return;
    for (n = 0; n < 64; ++n) {
        room = first + (n & 7) + ((n & 0x38) << 1);
        if (!room_find(active_group, room)) room = 0;
        IO(IO_WRAM_BANK) = 2;
        dungeon_layout[n] = room;
        IO(IO_WRAM_BANK) = 1;
        if ((n & 7) == 7) frame_end();
    }
}

static void set_respawn(u8 direction) {
    death_respawn_group = active_group;
    death_respawn_room = active_room;
    death_respawn_season = season;
    death_respawn_dir = direction;
    death_respawn_y = hero.y;
    death_respawn_x = hero.x;
}

static void transition_begin(void) {
    scroll_mode = 2;
    transition_state = 1;
    palette_fade_mode = 1;
    cutscene_index = 3;
    draw_sprites();
    palette_white();
    frame_end();
}

/* A room is loaded in parts that each fit in a frame. After the last, the step goes on at 0. */
static void load_part(u8 part) {
    switch (part) {
    case HEAD_TO_LOAD:
        load_head();
        break;
    case UPPER_HALF:
    case LOWER_HALF:
        unpack_half();
        break;
    case RECORDS_TO_LOAD:
        load_records();
        break;
    case DOORS_TO_OPEN:
        open_what_was_opened();
        if (scroll_mode == 8) palette_theme();
        break;
    }
}

static void load_room(void) {
    u8 part;
    clear_objects();
    for (part = HEAD_TO_LOAD; part; ++part) {
        frame_end();
        load_part(part);
    }
    frame_end();
}

static void transition_end(void) {
    draw_room();
    palette_theme();
    scroll_mode = 1;
    transition_state = 2;
    palette_fade_mode = 0;
    cutscene_index = 1;
    hud_stale = 1;
}

/* Appear somewhere else: stairs, doors, caves, the start of the game, life after death. */
void room_enter(u8 group, u8 room, u8 pos, u8 direction) {
    u8 was = dungeon_index;
    warp_dest_group = group;
    warp_dest_room = room;
    warp_dest_pos = pos;
    warp_trigger = 0;
    sound(SOUND_STAIRS);
    active_group = group;
    active_room = room;
    transition_begin();
    load_room();
    hero_place(pos, direction);
    entered_warp_pos = pos;
    set_respawn(direction);
    if (dungeon_index != was) load_dungeon_grid();
    transition_end();
}

/* The season changed: show the same room as it is now. */
void room_reload(void) {
    transition_begin();
    load_room();
    transition_end();
}

/* Walk over the edge of the room: the next one scrolls in, 8 pixels a frame. */
void cross_start(u8 direction) {
    u8 next = active_room + (direction == UP ? -16 : direction == DOWN ? 16 : direction == LEFT ? -1 : 1);
    if (!room_find(active_group, next)) return;
    active_room = next;
    transition_direction = direction;
    scroll_mode = 8;
    transition_state = 5;
    cutscene_index = 0;
    menu_disabled = 1;
    scroll_step = HEAD_TO_LOAD;
    clear_objects();
    if (direction == RIGHT) camera_column += SCROLL_COLUMNS;
    else if (direction == LEFT) camera_column -= SCROLL_COLUMNS;
    else if (direction == DOWN) camera_row += SCROLL_ROWS;
    else camera_row -= SCROLL_ROWS;
    camera_column &= 31;
    camera_row &= 31;
}

/* The hero is carried along: he ends at the opposite edge. */
static void scroll_by_one(u8 step) {
    switch (transition_direction) {
    case RIGHT:
        draw_column(step);
        scroll_x += 8;
        hero.x -= 7 + (step & 1);
        break;
    case LEFT:
        draw_column(SCROLL_COLUMNS - 1 - step);
        scroll_x -= 8;
        hero.x += 7 + (step & 1);
        break;
    case DOWN:
        draw_row(step);
        scroll_y += 8;
        hero.y -= 7 + !(step & 3);
        break;
    default:
        draw_row(SCROLL_ROWS - 1 - step);
        scroll_y -= 8;
        hero.y += 7 + !(step & 3);
    }
}

static void cross_end(void) {
    if (transition_direction == RIGHT) hero.x = FIRST_X;
    if (transition_direction == LEFT) hero.x = LAST_X;
    if (transition_direction == DOWN) hero.y = FIRST_Y;
    if (transition_direction == UP) hero.y = LAST_Y;
    local_respawn_x = hero.x;
    local_respawn_y = hero.y;
    local_respawn_dir = hero.direction;
    entered_warp_pos = 255;
    scroll_mode = 1;
    transition_state = 2;
    cutscene_index = 1;
    menu_disabled = 0;
}

void cross_update(void) {
    u8 last = (transition_direction & 1 ? SCROLL_COLUMNS : SCROLL_ROWS) - 1;
    if (scroll_step >= HEAD_TO_LOAD) {
        load_part(scroll_step++);
        return;
    }
    scroll_by_one(scroll_step);
    if (scroll_step++ == last) cross_end();
}

/* ---- doors, warps, riddles ---- */

u8 warp_check(u8 pos) {
    Warp *warp;
    u8 n;
    if (pos == entered_warp_pos) return 0;
    entered_warp_pos = 255;
    for (n = 0, warp = warps; n < warp_count; ++n, ++warp)
        if (warp->pos == pos) {
            room_enter(warp->group, warp->room, warp->dest, warp->direction);
            return 1;
        }
    return 0;
}

Spot *spot_find(u8 pos) {
    u8 n;
    for (n = 0; n < spot_count; ++n)
        if (spots[n].pos == pos) return spots + n;
    return 0;
}

/* Doors of several cells open together. */
static void open_along(u8 pos, u8 step, u8 act) {
    for (; WORLD->tile_act[tile_at(pos)] == act; pos += step) tile_change(pos);
}

/* Open a key door or cracked wall for good, on both sides. */
void open_door(u8 pos) {
    u8 act = WORLD->tile_act[tile_at(pos)], step = pos < 16 || pos >= 112 ? 1 : 16;
    *room_flags() |= door_bit(pos);
    open_along(pos, step, act);
    open_along(pos - step, -step, act);
    if (pos < 16) *(room_flags() - 16) |= 4;
    else if ((pos & 15) == 9) *(room_flags() + 1) |= 8;
    else if (pos >= 112) *(room_flags() + 16) |= 1;
    else if (!(pos & 15)) *(room_flags() - 1) |= 2;
}

static void reveal_hidden(void) {
    u8 n;
    Object *object;
    for (n = 0; n < PEOPLE; ++n) {
        object = person_slot(n);
        if (object->enabled && !object->state) {
            object->state = 8;
            sound(SOUND_DROP);
        }
    }
    for (n = 0; n < spot_count; ++n)
        if (spots[n].flag & REC_HIDDEN) {
            tile_set(spots[n].pos, WORLD->tile_of_id[TILE_CHEST]);
            part_spawn(PART_PUFF, 0, ((spots[n].pos & 15) << 4) + 8, (spots[n].pos & 0xF0) + 8);
        }
}

/* The riddle of the room is solved: gates and shutters open for good, hidden things appear. */
void room_solve(void) {
    u8 n;
    if (*room_flags() & ROOM_SOLVED) return;
    *room_flags() |= ROOM_SOLVED;
    sound(SOUND_SOLVED);
    if (shutter_count) sound(SOUND_DOOR);
    for (n = 0; n < shutter_count; ++n) tile_change(shutters[n]);
    open_shutters = shutter_count;
    reveal_hidden();
}

/* Buttons held down, in the order of their cells, as bits of active_triggers. */
static void press_button(u8 pos) {
    u8 bit = 1;
    sound(SOUND_SPLASH);
    tile_change(pos);
    while (active_triggers & bit) bit <<= 1;
    active_triggers |= bit;
}

void room_update(void) {
    u8 act = WORLD->tile_act[tile_at(active_tile_pos)];
    if (act == ACT_BUTTON && !link_in_air) press_button(active_tile_pos);
    if (*room_flags() & ROOM_SOLVED) return;
    if (solve_by == SOLVE_CLEARED && !num_enemies) room_solve();
    if (solve_by == SOLVE_PRESSED && active_triggers == button_bits) room_solve();
}
